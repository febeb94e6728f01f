// Compares the rails of one side, ours or a peer's: which has carried the least, and whether one of
// them is slow.
//
// Functions of their arguments: no state, no clock.
// Called under the transport's lock.
#pragma once

#include <algorithm>
#include <cstddef>
#include <cstdint>
#include <span>

#include "src/transport/rails/state.hpp"

namespace weft::transport::rails {

using Side = std::span<RailLoad* const>;

[[nodiscard]] constexpr std::size_t index_of(Direction direction) {
  return static_cast<std::size_t>(direction);
}

// Resets the counts of the rails of this side, so that a rail that carried less so far does not
// have to catch up.
template <typename Rails>
void start_even(Rails& rails) {
  for (auto& rail : rails) {
    rail.load.turn_bytes = {};
    rail.load.burst_bytes = {};
  }
}

// The bytes that the rail has carried since start_even, divided by its weight.
[[nodiscard]] double turn_load(const RailLoad& load, Direction direction);

// The rail with the smallest turn_load.
[[nodiscard]] std::uint32_t fewest_turn_bytes(Side side, Direction direction);

template <typename Rails>
[[nodiscard]] bool has_slow_rail(const Rails& rails) {
  return std::ranges::any_of(rails, [](const auto& rail) { return rail.load.weight.is_slow(); });
}

// Begins a burst: forgets the bytes of the last one. False if this burst has begun already.
bool begin_turn(Turn& turn, Side side, Direction direction, std::uint64_t burst);

}  // namespace weft::transport::rails
