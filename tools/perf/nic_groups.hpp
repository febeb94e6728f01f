// Which NICs are judged together at each moment: those of each PE, and all of a node. PE 0 makes
// the groups from the reports of all, and tells them to the PE of each node that has looked at its
// devices; what the library counted it judges itself (library_intervals.hpp). Pure.
#pragma once

#include <cstddef>
#include <cstdint>
#include <string>
#include <vector>

#include "tools/perf/balance.hpp"
#include "tools/perf/counter_sampler.hpp"

namespace weft::perf {

// What ends a step: a barrier of all PEs, or a quiet of this PE alone, which puts or gets.
enum class StepEnd { Barrier, QuietAfterPuts, QuietAfterGets };

// Whose counters tell the NICs apart: the kernel's do so only for rows that are one device each.
enum class CountedBy { Kernel, Library };

struct NicGroup {
  std::uint32_t node = 0;
  std::uint32_t pe = 0;  // whose NICs they are, unless is_node
  bool is_node = false;  // all NICs of the node's PEs, not those of one
  bool sends = false;
  bool receives = false;
  std::vector<std::string> nics;
  std::vector<std::size_t> rows;    // the same NICs in BalanceReport::nics
  std::vector<double> bytes_per_s;  // 0: not known; of payload, if the library counts
};

// Only groups of two or more NICs.
[[nodiscard]] std::vector<NicGroup> groups_of(const BalanceReport& report, CountedBy counter);

// Whether a step that `pe` saw end says something of the group. What a PE ended alone tells what
// its own operations did to its own NICs, no more.
[[nodiscard]] bool is_judged(const NicGroup& group,
                             Direction direction,
                             StepEnd end,
                             std::uint32_t pe);

// For the way from PE to PE.
[[nodiscard]] std::string format_groups(const std::vector<NicGroup>& groups);
[[nodiscard]] std::vector<NicGroup> parse_groups(const std::string& text);

// Where a group's figure of a direction is kept.
[[nodiscard]] Evenness& evenness_of_group(MomentReport::Groups& groups,
                                          const NicGroup& group,
                                          Direction direction);

// What the devices of one node did, as one of its PEs saw it.
struct DeviceSamples {
  std::uint32_t node = 0;
  std::uint32_t pe = 0;
  std::vector<std::string> names;
  const std::vector<CounterSample>& by_time;
  const std::vector<CounterSample>& by_step;
  StepEnd step_end = StepEnd::Barrier;
  double interval_s = 0;
  double look_s = 0;
};

[[nodiscard]] MomentReport judge_moments(const DeviceSamples& devices,
                                         const std::vector<NicGroup>& groups);

[[nodiscard]] std::string format_moments(const MomentReport& moments);
// Adds what another node found by its kernel's counters.
void add_moments(const std::string& text, MomentReport& moments);

}  // namespace weft::perf
