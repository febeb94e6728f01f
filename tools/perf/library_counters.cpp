#include "tools/perf/library_counters.hpp"

#include <algorithm>
#include <array>

#include "src/base/ids.hpp"

namespace weft::perf {
namespace {

std::size_t count_or_throw(int result) {
  if (result < 0) {
    require(result);
  }
  return std::min(static_cast<std::size_t>(result), kRailCountMax);
}

}  // namespace

LibraryCounters::LibraryCounters(const Job& job)
    : rail_count_(count_or_throw(weft_counters(nullptr, 0))) {
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
        pe == job.me() ? 0 : count_or_throw(weft_peer_counters(peer, nullptr, 0));
    if (count > 0) {
      peers_.push_back({.pe = peer, .count = count});
      add(pe, count);
    }
  }
}

std::vector<weft_rail_counters> LibraryCounters::rails() const {
  std::vector<weft_rail_counters> rails(rail_count_);
  static_cast<void>(weft_counters(rails.data(), rails.size()));
  return rails;
}

std::vector<NicBytes> LibraryCounters::read() const {
  std::vector<NicBytes> samples;
  samples.reserve(columns_.rails.size());
  for (const weft_rail_counters& rail : rails()) {
    samples.push_back({.tx_bytes = rail.tx_bytes, .rx_bytes = rail.rx_bytes});
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
