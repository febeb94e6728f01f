// The faults of a command line: --slow and --fail.
//
// Pure. Throws Error with the grammar.
#pragma once

#include <string>

#include "tools/sim/setup.hpp"

namespace weft::sim {

// "nic0@all:0.5": NIC 0 of all PEs at half its rate; "n3.g2.nic1:0.5": of one PE.
[[nodiscard]] SlowNic parse_slow(const std::string& text, std::uint32_t pes_per_node);
// "n3.g2.nic1@2ms", "nic0@all@500us".
[[nodiscard]] FailedNic parse_failed(const std::string& text, std::uint32_t pes_per_node);

}  // namespace weft::sim
