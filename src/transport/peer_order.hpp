// The order in which a PE contacts all others at the start of a job.
//
// Pure; any thread.
// Each other PE is named once, so it is empty in a job of one PE.
#pragma once

#include <cstdint>
#include <vector>

#include "src/base/ids.hpp"

namespace weft::transport {

// In the order (me + k) mod n, so that no PE is contacted by all others at once.
[[nodiscard]] inline std::vector<Pe> peers_in_turn(Pe me, std::uint32_t pe_count) {
  std::vector<Pe> peers;
  for (std::uint32_t k = 1; k < pe_count; ++k) {
    peers.emplace_back((me.value + k) % pe_count);
  }
  return peers;
}

}  // namespace weft::transport
