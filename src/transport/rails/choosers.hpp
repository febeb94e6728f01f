// How a piece finds its rails. Two ways: by the bytes that the rails of both sides have had, and by the number of the
// operation. A policy (policies.cpp) takes one of them, or brings its own with these signatures.
//
// Pure, as planner.hpp.
#pragma once

#include <cstdint>
#include <optional>

#include "src/transport/rails/planner.hpp"

namespace weft::transport::rails {

// ---- By bytes: rails that would be done first, senders apart at each moment.

[[nodiscard]] std::optional<Piece> next_by_bytes(const PlanInput& input, Rest rest);
[[nodiscard]] std::optional<Piece> message_by_bytes(const PlanInput& input, std::uint64_t bytes);
[[nodiscard]] std::optional<RailIndex> awaited_by_bytes(const PlanInput& input, Rest rest);

// ---- By the number of the operation (PlanInput::counter), which names its link.

[[nodiscard]] RailPair rail_zero(const PlanInput& input);
[[nodiscard]] RailPair same_index(const PlanInput& input);
// Our rail in turn, the peer's (me + peer + counter) mod n.
[[nodiscard]] RailPair by_sum(const PlanInput& input);

[[nodiscard]] std::optional<Piece> whole_on(const PlanInput& input, RailPair named, Rest rest);

template <RailPair (*kLink)(const PlanInput&)>
[[nodiscard]] std::optional<Piece> next_by_count(const PlanInput& input, Rest rest) {
  return whole_on(input, kLink(input), rest);
}

template <RailPair (*kLink)(const PlanInput&)>
[[nodiscard]] std::optional<Piece> message_by_count(const PlanInput& input, std::uint64_t bytes) {
  return whole_on(input, kLink(input), {.total = bytes, .offset = 0, .lane = {}});
}

// It waits for no rail in particular.
[[nodiscard]] inline std::optional<RailIndex> awaits_none(const PlanInput& /*input*/,
                                                          Rest /*rest*/) {
  return std::nullopt;
}

}  // namespace weft::transport::rails
