// Slurm's short form for the names of hosts: "login,h[0-2,07],r[1-2]n[01-02]"
// (https://slurm.schedmd.com/scontrol.html, "hostlist").
//
// Pure; any thread.
#pragma once

#include <string>
#include <string_view>
#include <vector>

namespace weft::bootstrap {

// In the order of the text; leading zeros stay. Throws Error (InvalidArgument) for what is not such a list, and for
// more than 65536 names.
[[nodiscard]] std::vector<std::string> expand_host_list(std::string_view text);

}  // namespace weft::bootstrap
