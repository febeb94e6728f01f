// Lists of cores, as people write them for taskset and Slurm: "0-3,8", and which of them each PE of
// a machine gets. Numbers are those of the operating system, as in taskset and /proc/cpuinfo.
//
// Any thread. Pure but for check_cores, which for a moment moves the calling thread to see what the
// kernel allows it.
#pragma once

#include <cstdint>
#include <string_view>
#include <vector>

namespace weft::topology {

// In ascending order, each once; empty for an empty text. Throws Error (InvalidArgument).
[[nodiscard]] std::vector<int> parse_core_list(std::string_view text);

// What process `index` of `count` on a machine gets: every count-th core, or one in turn where
// there are fewer cores than processes.
[[nodiscard]] std::vector<int> share_of_cores(const std::vector<int>& cores,
                                              std::uint32_t index,
                                              std::uint32_t count);

// Throws Error (InvalidArgument) if a thread of this process may not run on them. `setting` names
// where they come from.
void check_cores(const std::vector<int>& cores, std::string_view setting);

}  // namespace weft::topology
