// An emulated node's machine as a file that hwloc reads in place of the real one (HWLOC_XMLFILE):
// packages, memory, cores, switches, GPUs and the NICs that the fabric has.
//
// Threads: one.
#pragma once

#include <string>

#include "loom/src/persona.hpp"
#include "loom/src/settings.hpp"
#include "loom/src/topology.hpp"

namespace loom {

// In hwloc 2's format. Throws Error if the node has more NICs than the topology.
[[nodiscard]] std::string describe_machine(const Topology& topology,
                                           const Persona& persona,
                                           const Settings& settings);

}  // namespace loom
