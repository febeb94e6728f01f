// Shared by all choosers: which rails may carry data to a peer. The policy must allow the link, and
// it must be up.
//
// Pure, like planner.hpp: any thread, no clock, no state.
// A local rail and a peer's rail are each identified by their index on their own side.
#pragma once

#include <cstdint>
#include <span>

#include "src/transport/rails/planner.hpp"
#include "src/transport/rails/policies.hpp"

namespace weft::transport::rails {

[[nodiscard]] inline std::uint32_t count_of(std::span<const RailState> side) {
  return static_cast<std::uint32_t>(side.size());
}

[[nodiscard]] inline bool is_linked(const PlanInput& input,
                                    std::uint32_t local,
                                    std::uint32_t remote) {
  return input.local[local].healthy && input.remote[remote].healthy &&
         ((input.links[local] >> remote) & 1U) != 0;
}

// A mask of the peer's rails to which local rail `local` may send under the policy.
[[nodiscard]] inline LinkMask allowed_remotes(const PlanInput& input, std::uint32_t local) {
  LinkMask mask = 0;
  for (std::uint32_t remote = 0; remote < count_of(input.remote); ++remote) {
    const RailPair pair{RailIndex(local), RailIndex(remote)};
    if (input.policy->may_use(pair, input.remote.size()) && is_linked(input, local, remote)) {
      mask |= LinkMask{1} << remote;
    }
  }
  return mask;
}

}  // namespace weft::transport::rails
