// Which NICs the doctor opens, and what is wrong with the others. One thread.
#pragma once

#include <vector>

#include "src/fabric/discovery.hpp"
#include "src/topology/machine.hpp"
#include "src/topology/nic_choice.hpp"
#include "tools/info/doctor/step.hpp"

namespace weft::info {

// Where PEs of this node are, and which of them asks.
struct NodeQuestion {
  std::vector<topology::PePlace> places;
  std::uint32_t local_index = 0;
};

// Those that PE `local_index` would open; with `all_nics` all that are up. Reports NICs that are down and
// settings that fit nothing here. Throws Error only for what is no matter of NICs.
[[nodiscard]] std::vector<fabric::NicInfo> plan_rails(const Config& config,
                                                      const topology::Machine& machine,
                                                      const NodeQuestion& question,
                                                      bool all_nics,
                                                      const Reporter& reporter);

}  // namespace weft::info
