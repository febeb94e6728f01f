#include "src/runtime/memory_limit.hpp"

#include <algorithm>
#include <fstream>

#include "src/base/control_groups.hpp"

namespace weft::runtime {

std::uint64_t memory_limit(const std::string& root) {
  std::uint64_t limit = 0;
  std::ifstream meminfo(root + "/proc/meminfo");
  std::string name;
  std::uint64_t kib = 0;
  if (meminfo >> name >> kib && name == "MemTotal:") {
    limit = kib * 1024;
  }
  for (const GroupMemory& group : group_memory(root)) {
    limit = limit == 0 ? group.limit : std::min(limit, group.limit);
  }
  return limit;
}

}  // namespace weft::runtime
