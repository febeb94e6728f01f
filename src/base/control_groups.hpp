// The memory limits of the control groups that this process is in (cgroups(7)), versions 1 and 2. A
// batch system limits a job's group, and a container sees its own group as the root.
//
// Any thread. Nothing is cached.
#pragma once

#include <cstdint>
#include <optional>
#include <string>
#include <vector>

namespace weft {

struct GroupMemory {
  std::string folder;  // of the group, for messages
  std::uint64_t limit = 0;
  std::optional<std::uint64_t> used;
};

// Of this process's group and of each around it, up to the root; groups without a limit are left
// out. `root` is "" except in tests.
[[nodiscard]] std::vector<GroupMemory> group_memory(const std::string& root = "");

}  // namespace weft
