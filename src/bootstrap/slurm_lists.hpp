// Slurm's short forms for lists: the names of hosts, "login,h[0-2,07],r[1-2]n[01-02]"
// (https://slurm.schedmd.com/scontrol.html, "hostlist"), and one number for each host, "2(x3),1"
// (https://slurm.schedmd.com/sbatch.html, "SLURM_TASKS_PER_NODE").
//
// Pure; any thread.
#pragma once

#include <cstdint>
#include <string>
#include <string_view>
#include <vector>

namespace weft::bootstrap {

// In the order of the text; leading zeros stay. Throws Error (InvalidArgument) for what is not such
// a list, and for more than 65536 names.
[[nodiscard]] std::vector<std::string> expand_host_list(std::string_view text);

// "2(x3),1" -> 2, 2, 2, 1. Throws Error (InvalidArgument) for what is not such a list, and for more
// than 65536 hosts.
[[nodiscard]] std::vector<std::uint32_t> expand_tasks_per_node(std::string_view text);

}  // namespace weft::bootstrap
