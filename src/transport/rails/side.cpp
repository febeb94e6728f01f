#include "src/transport/rails/side.hpp"

#include <algorithm>
#include <limits>

namespace weft::transport::rails {
namespace {

// A rail that is taken for a slow one and carries too little to be measured is tried again after this time.
constexpr std::uint64_t kForgetNs = 2'000'000'000;
// Rails that carry less in a burst show the latency of the fabric and not their rate.
constexpr std::uint64_t kJudgedBytesMin = 16U << 10U;

// What a burst that is over tells of the rails of a side: those that carried about the same should have been done
// at about the same time.
void judge_burst(Side side, Direction direction, std::uint64_t began_ns) {
  const std::size_t index = index_of(direction);
  std::uint64_t most = 0;
  for (const RailLoad* load : side) {
    most = std::max(most, load->burst_bytes[index]);
  }
  const auto is_comparable = [&](const RailLoad* load) {
    return load->burst_bytes[index] >= std::max(kJudgedBytesMin, most - most / 4) &&
           load->done_ns > began_ns;
  };
  std::uint64_t shortest_ns = std::numeric_limits<std::uint64_t>::max();
  for (const RailLoad* load : side) {
    if (is_comparable(load)) {
      shortest_ns = std::min(shortest_ns, load->done_ns - began_ns);
    }
  }
  for (RailLoad* load : side) {
    if (is_comparable(load)) {
      load->weighed_ns = load->done_ns;
      load->weight.update_by_burst(static_cast<double>(shortest_ns) /
                                   static_cast<double>(load->done_ns - began_ns));
    }
  }
}

}  // namespace

void start_even(Side side) {
  for (RailLoad* load : side) {
    load->turn_bytes = {};
    load->burst_bytes = {};
  }
}

double turn_load(const RailLoad& load, Direction direction) {
  return static_cast<double>(load.turn_bytes[index_of(direction)]) / load.weight.value();
}

std::uint32_t fewest_turn_bytes(Side side, Direction direction) {
  const auto best = std::ranges::min_element(
      side, {}, [&](const RailLoad* load) { return turn_load(*load, direction); });
  return static_cast<std::uint32_t>(best - side.begin());
}

bool has_slow_rail(Side side) {
  return std::ranges::any_of(side, [](const RailLoad* load) { return load->weight.is_slow(); });
}

bool begin_turn(Turn& turn, Side side, Direction direction, BurstMoment burst) {
  if (turn.burst == burst.number) {
    return false;
  }
  if (burst.is_judged) {
    judge_burst(side, direction, turn.began_ns);
  }
  turn.burst = burst.number;
  turn.began_ns = burst.now_ns;
  for (RailLoad* load : side) {
    load->burst_bytes[index_of(direction)] = 0;
  }
  return true;
}

void renew_weights(Side side, std::uint64_t now_ns) {
  double fastest = 0;
  for (const RailLoad* load : side) {
    fastest = std::max(fastest, load->meter.bytes_per_s());
  }
  bool has_changed = false;
  for (RailLoad* load : side) {
    const double before = load->weight.value();
    if (load->weighed_samples != load->meter.samples()) {
      load->weighed_samples = load->meter.samples();
      load->weighed_ns = now_ns;
      load->weight.update(load->meter.bytes_per_s(), fastest);
    } else if (before < 1 && now_ns - load->weighed_ns > kForgetNs) {
      load->weighed_ns = now_ns;
      load->weight.forget();
    }
    has_changed = has_changed || load->weight.value() != before;
  }
  if (has_changed) {
    start_even(side);
  }
}

}  // namespace weft::transport::rails
