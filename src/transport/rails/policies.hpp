// A rail policy is a value: which links it may use, and the functions that choose rails.
//
// To add one: docs/DEVELOPING.md, "A rail policy".
//
// Threads: any. All of it is constant.
#pragma once

#include <cstdint>
#include <optional>
#include <span>
#include <string_view>

#include "src/transport/rails/planner.hpp"

namespace weft::transport::rails {

struct Policy {
  std::string_view name;
  // Whether this pair of rails may be used at all.
  bool (*may_use)(RailPair pair, std::size_t remote_count);
  // Whether the pair is used while every link is up. Warm-up opens these connections.
  bool (*is_first_choice)(RailPair pair, std::size_t remote_count);
  // Implement next_piece, next_message and awaited_rail.
  std::optional<Piece> (*next)(const PlanInput& input, Rest rest);
  std::optional<Piece> (*message)(const PlanInput& input, std::uint64_t bytes);
  std::optional<RailIndex> (*awaited)(const PlanInput& input, Rest rest);
  // Our rail determines the peer's.
  bool names_remote = false;
};

// In the order of base/rail_policies.hpp.
[[nodiscard]] std::span<const Policy> policies();
// Throws Error for an unknown name; the message lists the policies.
[[nodiscard]] const Policy* find_policy(std::string_view name);

}  // namespace weft::transport::rails
