#include "tools/info/doctor/neighbour_trial.hpp"

#include <algorithm>
#include <cstring>

#include <fmt/format.h>
#include <fmt/ranges.h>

#include "src/base/clock.hpp"
#include "src/base/error.hpp"
#include "src/base/ids.hpp"
#include "tools/info/doctor/job.hpp"
#include "tools/info/doctor/unreached.hpp"

namespace weft::info {
namespace {

using Json = nlohmann::ordered_json;

constexpr std::size_t kPieceBytes = std::size_t{256} << 10U;
constexpr std::size_t kSmallTimes = 15;
constexpr std::size_t kTriesPerRail = 4;  // a policy need not take the rails in turn
constexpr std::size_t kInFlightPerRail = 4;
constexpr std::uint64_t kRateNs = 100'000'000;

std::string name_of(const weft_rail_counters& rail) {
  const std::string_view nic = rail.nic;
  const std::string_view address = rail.address;
  return address.empty() || address == nic ? std::string(nic)
                                           : fmt::format("{} ({})", nic, address);
}

std::uint64_t median(std::vector<std::uint64_t> values) {
  if (values.empty()) {
    return 0;
  }
  const auto middle = values.begin() + static_cast<std::ptrdiff_t>(values.size() / 2);
  std::ranges::nth_element(values, middle);
  return *middle;
}

}  // namespace

std::vector<weft_rail_counters> read_rails() {
  std::vector<weft_rail_counters> rails(kRailCountMax);
  rails.resize(static_cast<std::size_t>(check(weft_counters(rails.data(), rails.size()))));
  return rails;
}

NeighbourTrial::NeighbourTrial(int neighbour, const Reporter& reporter)
    : neighbour_(neighbour), reporter_(reporter), rails_(read_rails()), figures_(rails_.size()) {}

void NeighbourTrial::connect() {
  reporter_.trying(fmt::format("opening the connections to PE {}", neighbour_));
  const std::uint64_t start = now_ns();
  check(weft_warmup(&neighbour_, 1));
  connect_ms_ = static_cast<double>(now_ns() - start) / 1e6;
  const auto after = read_rails();
  for (std::size_t rail = 0; rail < rails_.size(); ++rail) {
    // Each connection is opened by a put of 8 bytes (docs/COUNTERS.md), and nothing else has gone
    // yet.
    figures_[rail].connections = after[rail].tx_operations - rails_[rail].tx_operations;
  }
}

void NeighbourTrial::write(const std::string& who, TrialMemory memory) {
  bytes_ = memory.bytes / 2;
  target_ = memory.block;
  source_ = memory.block + bytes_;
  reporter_.trying(fmt::format("writing to {} and reading it back", who));
  if (!compare()) {
    return;
  }
  reporter_.trying(fmt::format("measuring writes to {}", who));
  measure_small();
  measure_rate();
  report(who);
}

std::vector<std::uint64_t> NeighbourTrial::put(std::size_t bytes, std::size_t count) {
  const auto before = read_rails();
  const std::uint64_t start = now_ns();
  for (std::size_t i = 0; i < count; ++i) {
    const std::size_t offset = i * bytes % (bytes_ / bytes * bytes);
    check(weft_put_nbi(target_ + offset, source_ + offset, bytes, neighbour_));
  }
  check(weft_quiet());
  took_ns_ = std::max<std::uint64_t>(now_ns() - start, 1);
  const auto after = read_rails();
  std::vector<std::uint64_t> carried(rails_.size());
  for (std::size_t rail = 0; rail < rails_.size(); ++rail) {
    carried[rail] = after[rail].tx_bytes - before[rail].tx_bytes;
  }
  return carried;
}

// One write at a time, so that it is known which rails carried bytes that are wrong.
bool NeighbourTrial::compare() {
  std::vector<std::byte> back(bytes_);
  const auto is_done = [](const Figures& figures) { return figures.has_carried; };
  for (std::size_t round = 0; round < kTriesPerRail * rails_.size(); ++round) {
    for (std::size_t i = 0; i < bytes_; ++i) {
      source_[i] = static_cast<std::byte>((i * 31 + (i >> 8U) * 7 + round * 101 + 1) & 0xffU);
    }
    const auto carried = put(bytes_, 1);
    check(weft_get(back.data(), target_, bytes_, neighbour_));
    if (std::memcmp(back.data(), source_, bytes_) != 0) {
      report_wrong(carried);
      return false;
    }
    for (std::size_t rail = 0; rail < rails_.size(); ++rail) {
      figures_[rail].has_carried = figures_[rail].has_carried || carried[rail] > 0;
    }
    if (std::ranges::all_of(figures_, is_done)) {
      break;
    }
  }
  return true;
}

void NeighbourTrial::measure_small() {
  const auto is_done = [](const Figures& figures) {
    return !figures.has_carried || figures.small_ns.size() >= kSmallTimes;
  };
  for (std::size_t i = 0; i < kTriesPerRail * kSmallTimes * rails_.size(); ++i) {
    const auto carried = put(sizeof(std::uint64_t), 1);
    const auto rail = std::ranges::max_element(carried) - carried.begin();
    figures_[static_cast<std::size_t>(rail)].small_ns.push_back(took_ns_);
    if (std::ranges::all_of(figures_, is_done)) {
      return;
    }
  }
}

// All rails at once, as a program uses them.
void NeighbourTrial::measure_rate() {
  std::vector<std::uint64_t> bytes(rails_.size());
  std::uint64_t took_ns = 0;
  const std::size_t piece = std::min(kPieceBytes, bytes_);
  while (took_ns < kRateNs) {
    const auto carried = put(piece, kInFlightPerRail * rails_.size());
    took_ns += took_ns_;
    std::ranges::transform(bytes, carried, bytes.begin(), std::plus());
  }
  for (std::size_t rail = 0; rail < rails_.size(); ++rail) {
    figures_[rail].bytes_per_s =
        static_cast<double>(bytes[rail]) * 1e9 / static_cast<double>(took_ns);
  }
}

void NeighbourTrial::report(const std::string& who) const {
  const auto peer_rails =
      static_cast<std::uint64_t>(check(weft_peer_counters(neighbour_, nullptr, 0)));
  const auto unreached = find_unreached(read_own_log(), weft_pe());
  reporter_.ok(fmt::format("connections to {} opened in {:.1f} ms", who, connect_ms_),
               {{"connect_ms", connect_ms_}});
  for (std::size_t rail = 0; rail < rails_.size(); ++rail) {
    const Figures& figures = figures_[rail];
    const std::string name = fmt::format("rail {} {}", rail, name_of(rails_[rail]));
    const auto lost = static_cast<std::uint64_t>(std::ranges::count_if(
        unreached, [&](const Unreached& one) { return one.rail == rail && one.pe == neighbour_; }));
    const std::uint64_t reached =
        std::min(figures.connections, peer_rails - std::min(peer_rails, lost));
    if (!figures.has_carried) {
      if (reached > 0) {
        reporter_.skipped(fmt::format("{} was given nothing to carry by WEFT_RAIL_POLICY={}", name,
                                      weft_rail_policy()));
      }
      continue;
    }
    const std::uint64_t small_ns = median(figures.small_ns);
    reporter_.ok(
        fmt::format("{} to {} of {} rails of {}: 8 B in {:.1f} us, {:.3f} GB/s, data right", name,
                    reached, peer_rails, who, static_cast<double>(small_ns) / 1e3,
                    figures.bytes_per_s / 1e9),
        {{"rail", rail},
         {"nic", rails_[rail].nic},
         {"to", who},
         {"peer_rails_reached", reached},
         {"peer_rails", peer_rails},
         {"write_8_bytes_ns", small_ns},
         {"bytes_per_s", figures.bytes_per_s}});
  }
  if (peer_rails != rails_.size()) {
    reporter_.note(fmt::format("{} has {} rails and this PE {}", who, peer_rails, rails_.size()),
                   "weft-info there and here says which NIC is missing and why");
  }
}

void NeighbourTrial::report_wrong(const std::vector<std::uint64_t>& carried) const {
  std::vector<std::string> names;
  for (std::size_t rail = 0; rail < carried.size(); ++rail) {
    if (carried[rail] > 0) {
      names.push_back(fmt::format("{} {}", rail, name_of(rails_[rail])));
    }
  }
  reporter_.problem(
      fmt::format("other bytes came back from PE {} than were written over rail {}", neighbour_,
                  fmt::join(names, ", ")),
      "try the NICs one by one with WEFT_NICS, and leave out the one that fails; tell the "
      "developers its driver and firmware");
}

}  // namespace weft::info
