// A rail policy is a value: which links it may use, and how a piece finds its rails.
//
// To add one: docs/DEVELOPING.md, "A rail policy".
//
// Threads: any; all of it is constant.
#pragma once

#include <cstdint>
#include <optional>
#include <span>
#include <string_view>

#include "src/transport/rails/planner.hpp"

namespace weft::transport::rails {

struct Policy {
  std::string_view name;
  // Whether these rails may be used together at all.
  bool (*may_use)(RailPair pair, std::size_t remote_count);
  // Whether they are while every link is up: what warm-up connects.
  bool (*is_first_choice)(RailPair pair, std::size_t remote_count);
  // Behind next_piece, next_message and awaited_rail.
  std::optional<Piece> (*next)(const PlanInput& input, Rest rest);
  std::optional<Piece> (*message)(const PlanInput& input, std::uint64_t bytes);
  std::optional<RailIndex> (*awaited)(const PlanInput& input, Rest rest);
  // A rail of ours goes to one rail of the peer only.
  bool names_remote = false;
};

// In the order of base/rail_policies.hpp.
[[nodiscard]] std::span<const Policy> policies();
// Throws Error for a name that is not a policy, listing those that are.
[[nodiscard]] const Policy* find_policy(std::string_view name);

}  // namespace weft::transport::rails
