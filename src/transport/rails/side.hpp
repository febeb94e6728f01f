// The rails of one side, ours or a peer's, beside each other: which has carried less, which is slow, and what a
// burst that is over tells of both.
//
// Functions of the loads they are given; called under the transport's lock, by Links alone.
#pragma once

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
void start_even(Side side);

// What the rail has carried since its side started even, for its weight.
[[nodiscard]] double turn_load(const RailLoad& load, Direction direction);

// The rail with the least of it.
[[nodiscard]] std::uint32_t fewest_turn_bytes(Side side, Direction direction);

[[nodiscard]] bool has_slow_rail(Side side);

struct BurstMoment {
  std::uint64_t number = 0;
  std::uint64_t now_ns = 0;
  bool is_judged = true;  // the one before it tells how fast rails are
};

// A new burst begins: judges the last one, and forgets its bytes. False if it had begun.
bool begin_turn(Turn& turn, Side side, Direction direction, BurstMoment burst);

// Weights from the rates of the meters.
void renew_weights(Side side, std::uint64_t now_ns);

}  // namespace weft::transport::rails
