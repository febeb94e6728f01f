// The PEs of other nodes with which a member of a team exchanges in collectives, whatever their
// root and sizes.
//
// Pure; any thread.
#pragma once

#include <algorithm>
#include <cstdint>
#include <vector>

#include "src/collectives/team_members.hpp"

namespace weft::collectives {

// With whom this PE exchanges in barriers, broadcasts and reductions over trees: the PEs with its
// place on the nodes whose distance is a power of two, in both directions.
[[nodiscard]] inline std::vector<Pe> partners_of(const TeamMembers& members) {
  const auto count = static_cast<std::uint32_t>(members.nodes().size());
  std::vector<Pe> partners;
  for (std::uint32_t distance = 1; distance < count; distance *= 2) {
    for (const std::uint32_t ahead : {distance, count - distance}) {
      const Mates& node = members.nodes()[(members.node() + ahead) % count];
      const Pe partner = members.pe(node[members.mate_index() % node.size()]);
      if (std::ranges::find(partners, partner) == partners.end()) {
        partners.push_back(partner);
      }
    }
  }
  return partners;
}

}  // namespace weft::collectives
