// How the rails of a piece are chosen. There are two ways: by the bytes that the rails of both
// sides have carried, and by the number of the operation. A policy (policies.cpp) uses one of them,
// or its own functions with these signatures.
//
// Pure, like planner.hpp.
#pragma once

#include <cstdint>
#include <optional>

#include "src/transport/rails/planner.hpp"

namespace weft::transport::rails {

// ---- By bytes: the rail that would finish first, with different senders on different rails at
// each moment.

[[nodiscard]] std::optional<Piece> next_by_bytes(const PlanInput& input, Rest rest);
[[nodiscard]] std::optional<Piece> message_by_bytes(const PlanInput& input, std::uint64_t bytes);
[[nodiscard]] std::optional<RailIndex> awaited_by_bytes(const PlanInput& input, Rest rest);

// ---- By the number of the operation (PlanInput::counter), which determines its link.

[[nodiscard]] RailPair rail_zero(const PlanInput& input);
[[nodiscard]] RailPair same_index(const PlanInput& input);
// Our rail: counter mod our rails. The peer's: (me + peer + counter) mod its rails.
[[nodiscard]] RailPair by_sum(const PlanInput& input);

[[nodiscard]] std::optional<Piece> whole_on(const PlanInput& input, RailPair named, Rest rest);

template <RailPair (*kLink)(const PlanInput&)>
[[nodiscard]] std::optional<Piece> next_by_count(const PlanInput& input, Rest rest) {
  return whole_on(input, kLink(input), rest);
}

template <RailPair (*kLink)(const PlanInput&)>
[[nodiscard]] std::optional<Piece> message_by_count(const PlanInput& input, std::uint64_t bytes) {
  return whole_on(input, kLink(input), {.total = bytes, .offset = 0, .span = {}});
}

// For policies whose operations wait for no rail in particular.
[[nodiscard]] inline std::optional<RailIndex> awaits_none(const PlanInput& /*input*/,
                                                          Rest /*rest*/) {
  return std::nullopt;
}

}  // namespace weft::transport::rails
