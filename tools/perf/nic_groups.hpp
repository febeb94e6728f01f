// Which NICs are judged together at each moment: those of each PE, and all of a node. PE 0 makes the groups
// from the reports of all, and tells them to the PE of each node that has looked at its devices. Pure.
#pragma once

#include <cstdint>
#include <string>
#include <vector>

#include "tools/perf/balance.hpp"
#include "tools/perf/counter_sampler.hpp"

namespace weft::perf {

struct NicGroup {
  std::uint32_t node = 0;
  bool is_node = false;  // all NICs of the node's PEs, not those of one
  bool sends = false;
  bool receives = false;
  std::vector<std::string> nics;
  std::vector<double> bytes_per_s;  // 0: not known
};

// Only groups of two or more devices that the kernel counts apart.
[[nodiscard]] std::vector<NicGroup> groups_of(const BalanceReport& report);

// For the way from PE to PE.
[[nodiscard]] std::string format_groups(const std::vector<NicGroup>& groups);
[[nodiscard]] std::vector<NicGroup> parse_groups(const std::string& text);

// What the devices of one node did at each moment.
struct DeviceSamples {
  std::uint32_t node = 0;
  std::vector<std::string> names;
  std::vector<CounterSample> samples;
  double interval_s = 0;
  double look_s = 0;
};

[[nodiscard]] MomentReport judge_moments(const DeviceSamples& devices,
                                         const std::vector<NicGroup>& groups);

[[nodiscard]] std::string format_moments(const MomentReport& moments);
// Adds what another node found.
void add_moments(const std::string& text, MomentReport& moments);

}  // namespace weft::perf
