// The rails of one side, ours or a peer's, beside each other: which of them has carried less, and whether one of them
// is slow.
//
// Functions of the loads they are given: no state of their own, no clock. Called under the transport's lock.
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

// From now on the rails of this side are even: what one of them missed is not made up for.
template <typename Rails>
void start_even(Rails& rails) {
  for (auto& rail : rails) {
    rail.load.turn_bytes = {};
    rail.load.burst_bytes = {};
  }
}

// What the rail has carried since its side started even, for its weight.
[[nodiscard]] double turn_load(const RailLoad& load, Direction direction);

// The rail with the least of it.
[[nodiscard]] std::uint32_t fewest_turn_bytes(Side side, Direction direction);

template <typename Rails>
[[nodiscard]] bool has_slow_rail(const Rails& rails) {
  return std::ranges::any_of(rails, [](const auto& rail) { return rail.load.weight.is_slow(); });
}

// A new burst begins: forgets the bytes of the last one. False if it had begun.
bool begin_turn(Turn& turn, Side side, Direction direction, std::uint64_t burst);

}  // namespace weft::transport::rails
