// The PEs whose connections are opened at init. In a large job these are not all: a connection to
// any other PE is opened by the first operation to it, or by a warm-up that names it.
//
// Pure; any thread.
#pragma once

#include <cstddef>
#include <vector>

#include "src/collectives/partners.hpp"
#include "src/collectives/team_members.hpp"
#include "src/transport/peer_order.hpp"

namespace weft::runtime {

// Up to so many connections of a PE, all are opened at init.
inline constexpr std::size_t kWarmLinksMax = 128;

// `members`: of the team of all PEs. `links_per_peer`: the pairs of a rail of this PE and one of a
// peer.
[[nodiscard]] inline std::vector<Pe> peers_to_warm(const collectives::TeamMembers& members,
                                                   std::size_t links_per_peer) {
  const std::size_t remote = members.size() - members.mates().size();
  return remote * links_per_peer <= kWarmLinksMax
             ? transport::peers_in_turn(members.pe(members.index()), members.size())
             : collectives::partners_of(members);
}

}  // namespace weft::runtime
