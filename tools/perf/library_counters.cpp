#include "tools/perf/library_counters.hpp"

#include <algorithm>

namespace weft::perf {
namespace {

std::size_t at_least_none(int count) {
  return static_cast<std::size_t>(std::max(count, 0));
}

}  // namespace

LibraryCounters::LibraryCounters(const Job& job)
    : rail_count_(std::min(at_least_none(weft_counters(nullptr, 0)), kRailCountMax)) {
  const auto add = [&](std::uint32_t pe, std::size_t count) {
    for (std::uint32_t rail = 0; rail < count; ++rail) {
      columns_.rails.push_back({.pe = pe, .rail = rail});
    }
  };
  columns_.me = job.me();
  add(job.me(), rail_count_);
  for (std::uint32_t pe = 0; pe < job.pe_count(); ++pe) {
    const int peer = static_cast<int>(pe);
    const std::size_t count =
        pe == job.me()
            ? 0
            : std::min(at_least_none(weft_peer_counters(peer, nullptr, 0)), kRailCountMax);
    if (count > 0) {
      peers_.push_back({.pe = peer, .count = count});
      add(pe, count);
    }
  }
}

std::vector<NicSample> LibraryCounters::read() const {
  std::vector<NicSample> samples;
  samples.reserve(columns_.rails.size());
  std::array<weft_rail_counters, kRailCountMax> rails{};
  static_cast<void>(weft_counters(rails.data(), rail_count_));
  for (std::size_t rail = 0; rail < rail_count_; ++rail) {
    samples.push_back({.tx_bytes = rails[rail].tx_bytes, .rx_bytes = rails[rail].rx_bytes});
  }
  for (const PeerRails& peer : peers_) {
    std::array<weft_peer_rail_counters, kRailCountMax> counters{};
    static_cast<void>(weft_peer_counters(peer.pe, counters.data(), peer.count));
    for (std::size_t rail = 0; rail < peer.count; ++rail) {
      samples.push_back(
          {.tx_bytes = counters[rail].put_bytes, .rx_bytes = counters[rail].get_bytes});
    }
  }
  return samples;
}

}  // namespace weft::perf
