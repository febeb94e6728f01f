#include "src/runtime/memory_limit.hpp"

#include <algorithm>
#include <fstream>

namespace weft::runtime {

std::uint64_t memory_limit(const std::string& root) {
  std::uint64_t limit = 0;
  std::ifstream meminfo(root + "/proc/meminfo");
  std::string name;
  std::uint64_t kib = 0;
  if (meminfo >> name >> kib && name == "MemTotal:") {
    limit = kib * 1024;
  }
  // cgroup v2, where a container sees its own group. "max" fails to parse and means no limit.
  std::ifstream cgroup(root + "/sys/fs/cgroup/memory.max");
  if (std::uint64_t bytes = 0; cgroup >> bytes) {
    limit = limit == 0 ? bytes : std::min(limit, bytes);
  }
  return limit;
}

}  // namespace weft::runtime
