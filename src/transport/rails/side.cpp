#include "src/transport/rails/side.hpp"

#include <algorithm>

namespace weft::transport::rails {

double turn_load(const RailLoad& load, Direction direction) {
  return static_cast<double>(load.turn_bytes[index_of(direction)]) / load.weight.value();
}

std::uint32_t fewest_turn_bytes(Side side, Direction direction) {
  const auto best = std::ranges::min_element(
      side, {}, [&](const RailLoad* load) { return turn_load(*load, direction); });
  return static_cast<std::uint32_t>(best - side.begin());
}

bool begin_turn(Turn& turn, Side side, Direction direction, std::uint64_t burst) {
  if (turn.burst == burst) {
    return false;
  }
  turn.burst = burst;
  for (RailLoad* load : side) {
    load->burst_bytes[index_of(direction)] = 0;
  }
  return true;
}

}  // namespace weft::transport::rails
