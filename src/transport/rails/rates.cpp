#include "src/transport/rails/rates.hpp"

#include <algorithm>
#include <cmath>
#include <span>
#include <utility>

#include "src/base/log.hpp"
#include "src/transport/rails/side.hpp"

namespace weft::transport::rails {
namespace {

// A slow rail that carries too little to be judged is tried again after this time.
constexpr std::uint64_t kForgetNs = 2'000'000'000;
// With fewer bytes in a burst, a rail shows the latency and the initial burst of the fabric, not
// its rate (with 20 KiB, pairs of 4 KiB operations classified equal rails as slow: 0.68 of their
// rate instead of 0.90).
constexpr std::uint64_t kJudgedBytesMin = 32U << 10U;
// Smaller bursts, such as barriers, say nothing about the traffic.
constexpr std::uint64_t kTrafficBytesMin = 16U << 10U;
// After a burst, a rail is not judged if it posted less than this part of what the busiest rail
// posted, each divided by its weight.
constexpr double kComparable = 0.5;
// Peers are told again when a weight has changed by more than this part of itself.
constexpr double kToldChange = 0.05;
// The most bursts between two shifts of suspected rails.
constexpr std::uint64_t kShiftIntervalMax = 4096;
// A burst that lasts longer is judged once in each such interval.
constexpr std::uint64_t kJudgeIntervalNs = 200'000'000;
// The same for a burst whose operations are all posted. NICs serve connections in turn, so many
// pieces complete together at the end, and an average before that says little (all-to-all of 256
// KiB with 4 steps, 4 hosts x 2 PEs, NIC 0 of all PEs slow, simulated by tools/sim: 0.74
// of the rails' rate with the shorter interval, 0.96 with this one).
constexpr std::uint64_t kJudgeIntervalPostedNs = 1'000'000'000;

double fair_bytes(const LocalRail& rail, const RailPace& pace) {
  return static_cast<double>(pace.posted_bytes()) / rail.load.weight.value();
}

// How often the other rails were late; slow rails are left out.
Lateness lateness_beside(std::span<const LocalRail> rails, const LocalRail& rail) {
  Lateness others;
  for (const LocalRail& other : rails) {
    if (&other != &rail && !other.load.weight.is_slow()) {
      others.add(other.load.weight.lateness());
    }
  }
  return others;
}

// Judges our rails by a burst that is over or has lasted for long.
// If there are several peers, a rail that sent to only one of them is only suspected. That peer may
// be late to poll (an all-to-all of 16 KiB on a busy machine: 0.63 of the rails' rate instead of
// 0.96).
void judge(std::span<LocalRail> rails, Direction direction, BurstEnd end) {
  const std::size_t index = index_of(direction);
  double most = 0;
  for (const LocalRail& rail : rails) {
    most = std::max(most, fair_bytes(rail, rail.paces[index]));
  }
  const auto is_comparable = [&](const LocalRail& rail) {
    const RailPace& pace = rail.paces[index];
    return pace.done_bytes() > 0 && pace.posted_bytes() >= kJudgedBytesMin &&
           (!end.is_over || fair_bytes(rail, pace) >= kComparable * most);
  };
  std::uint64_t least = UINT64_MAX;
  std::size_t count = 0;
  for (const LocalRail& rail : rails) {
    if (is_comparable(rail)) {
      least = std::min(least, rail.paces[index].posted_bytes());
      ++count;
    }
  }
  // Rails that are loaded by their weights finish together, so each is judged by all of its bytes.
  const bool any_slow = has_slow_rail(rails);
  const auto rate_of = [&](const LocalRail& rail) {
    const RailPace& pace = rail.paces[index];
    return end.is_over ? pace.best_average(any_slow ? pace.posted_bytes() : least) : pace.average();
  };
  double fastest = 0;
  for (const LocalRail& rail : rails) {
    fastest = is_comparable(rail) ? std::max(fastest, rate_of(rail)) : fastest;
  }
  for (LocalRail& rail : rails) {
    if (is_comparable(rail) && count > 1 && rate_of(rail) > 0) {
      rail.weighed_ns = end.now_ns;
      const RailPace& pace = rail.paces[index];
      const double share = rate_of(rail) / fastest;
      const bool is_late = share < kSlowBelow;
      const std::uint32_t needed =
          is_late ? late_bursts_that_tell(lateness_beside(rails, rail)) : 0;
      if (end.peer_count > 1 && pace.peers() == 1) {
        rail.load.weight.update_lone(share, pace, needed);
      } else {
        rail.load.weight.update(share, pace, needed);
      }
    } else if (rail.load.weight.is_slow() && end.now_ns - rail.weighed_ns > kForgetNs) {
      rail.weighed_ns = end.now_ns;
      rail.load.weight.forget();
    }
  }
}

void say_change(std::ptrdiff_t index, std::uint8_t told_rate, double weight) {
  if (weight == 1) {
    log::info("rail {} is as fast as the others again", index);
  } else if (told_rate == kFullRate) {
    log::info("rail {} is slower than the others: its share is {:.2f} of theirs", index, weight);
  }
}

}  // namespace

void Rates::end_burst(Direction direction) {
  const std::size_t index = index_of(direction);
  Turn& ours = state_.turns[index];
  std::uint64_t bytes = 0;
  for (const LocalRail& rail : state_.rails) {
    bytes += rail.paces[index].posted_bytes();
  }
  const std::uint32_t peer_count = std::exchange(ours.peer_count, 0U);
  if (bytes >= kTrafficBytesMin) {
    ours.last_peer_count = peer_count;
    const auto is_rest = [&](const LocalRail& rail) { return rail.paces[index].is_rest(); };
    if (std::ranges::none_of(state_.rails, is_rest)) {
      judge_rails(direction, {.now_ns = state_.now_ns, .peer_count = peer_count});
    }
    shift_suspects(ours);
  }
  for (LocalRail& rail : state_.rails) {
    rail.paces[index] = {};
  }
}

// Each shift doubles the number of bursts until the next one, because using other connections costs
// time.
void Rates::shift_suspects(Turn& ours) {
  const auto is_suspected = [](const LocalRail& rail) { return rail.load.weight.is_suspected(); };
  if (ours.burst < ours.next_shift || std::ranges::none_of(state_.rails, is_suspected)) {
    return;
  }
  ours.shift_interval = std::min(2 * ours.shift_interval, kShiftIntervalMax);
  ours.next_shift = ours.burst + ours.shift_interval;
  ours.start = (ours.start + 1) % static_cast<std::uint32_t>(state_.rails.size());
  for (LocalRail& rail : state_.rails) {
    rail.load.weight.on_shift();
  }
}

// Updates the weights of our rails, and what peers are told. Peers are told of a slow rail only if
// it was slow with several peers: with a single one, that peer's rail may be the slow one.
void Rates::judge_rails(Direction direction, BurstEnd end) {
  judge(state_.rails, direction, end);
  bool has_changed = false;
  for (LocalRail& rail : state_.rails) {
    const double weight = rail.load.weight.value();
    const bool is_ours = rail.load.weight.is_ours() || weight == 1;
    const double change = std::abs(weight - static_cast<double>(rail.told_rate) / kFullRate);
    if (is_ours && (change > kToldChange * weight || (change > 0 && weight == 1))) {
      say_change(&rail - state_.rails.data(), rail.told_rate, weight);
      rail.told_rate = static_cast<std::uint8_t>(std::lround(weight * kFullRate));
      has_changed = true;
    }
  }
  if (has_changed) {
    ++state_.rates_version;
    start_even(state_.rails);
    renew_evenness();
  }
}

RatesFrame Rates::frame() const {
  RatesFrame frame{.rail_count = static_cast<std::uint8_t>(state_.rails.size())};
  std::ranges::transform(state_.rails, frame.rates.begin(), &LocalRail::told_rate);
  const auto is_slow = [](const LocalRail& rail) { return rail.told_rate < kFullRate; };
  frame.knows_slow = state_.slow_peers > 0 || std::ranges::any_of(state_.rails, is_slow) ? 1 : 0;
  return frame;
}

void Rates::on_told(Peer& peer, const RatesFrame& told) {
  const bool had_slow_peer = state_.slow_peers > 0;
  const bool was_slow = has_slow_rail(peer.rails);
  for (std::size_t i = 0; i < peer.rails.size(); ++i) {
    peer.rails[i].load.weight.set(static_cast<double>(told.rates[i]) / kFullRate);
  }
  start_even(peer.rails);
  state_.slow_peers += (has_slow_rail(peer.rails) ? 1 : 0) - (was_slow ? 1 : 0);
  const bool knew_slow = std::exchange(peer.knows_slow, told.knows_slow != 0);
  state_.peers_that_know_slow += (peer.knows_slow ? 1 : 0) - (knew_slow ? 1 : 0);
  state_.rates_version += had_slow_peer != (state_.slow_peers > 0) ? 1 : 0;
  renew_evenness();
}

void Rates::renew_evenness() {
  state_.is_job_even = frame().knows_slow == 0 && state_.peers_that_know_slow == 0;
}

void Rates::judge_long_bursts() {
  for (const Direction direction : {Direction::Write, Direction::Read}) {
    const std::size_t index = index_of(direction);
    const std::uint64_t interval_ns =
        state_.bursts[index].has_unplanned() ? kJudgeIntervalNs : kJudgeIntervalPostedNs;
    const auto is_long = [&](const LocalRail& rail) {
      const RailPace& pace = rail.paces[index];
      return pace.done_bytes() > 0 && state_.now_ns - pace.began_ns() > interval_ns;
    };
    const auto is_tail = [&](const LocalRail& rail) { return rail.paces[index].is_tail(); };
    if (std::ranges::all_of(state_.rails, is_long) && std::ranges::none_of(state_.rails, is_tail)) {
      judge_rails(direction, {.now_ns = state_.now_ns,
                              .peer_count = state_.turns[index].peer_count,
                              .is_over = false});
      for (LocalRail& rail : state_.rails) {
        rail.paces[index].restart();
      }
    }
  }
}

}  // namespace weft::transport::rails
