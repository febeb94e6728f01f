#include "tools/info/memory_limits.hpp"

#include <algorithm>
#include <fstream>
#include <sstream>

#include <fmt/format.h>
#include <sys/resource.h>

#include "src/base/control_groups.hpp"

namespace weft::info {
namespace {

// proc_meminfo(5): "MemAvailable:   23368 kB"
std::optional<std::uint64_t> meminfo(const std::string& path, const std::string& name) {
  std::ifstream file(path);
  for (std::string line; std::getline(file, line);) {
    std::istringstream words(line);
    std::string key;
    std::uint64_t number = 0;
    std::string unit;
    if (words >> key >> number && key == name + ":") {
      return words >> unit ? number * 1024 : number;
    }
  }
  return std::nullopt;
}

// The tightest of the groups from this one up to the root.
std::optional<std::uint64_t> group_room(const std::string& root) {
  std::optional<std::uint64_t> room;
  for (const GroupMemory& group : group_memory(root)) {
    if (group.used) {
      const std::uint64_t left = group.limit - std::min(group.limit, *group.used);
      room = room ? std::min(*room, left) : left;
    }
  }
  return room;
}

// "always within_size [advise] never": the word in brackets.
std::string chosen_word(const std::string& path) {
  std::ifstream file(path);
  for (std::string word; file >> word;) {
    if (word.size() > 2 && word.front() == '[' && word.back() == ']') {
      return word.substr(1, word.size() - 2);
    }
  }
  return "";
}

}  // namespace

MemoryLimits read_memory_limits(const std::string& root) {
  const std::string info = root + "/proc/meminfo";
  MemoryLimits limits;
  limits.free_bytes = meminfo(info, "MemAvailable");
  limits.group_bytes = group_room(root);
  limits.available_bytes = limits.free_bytes;
  if (limits.group_bytes) {
    limits.available_bytes = std::min(limits.free_bytes.value_or(UINT64_MAX), *limits.group_bytes);
  }
  rlimit space{};
  if (::getrlimit(RLIMIT_AS, &space) == 0 && space.rlim_cur != RLIM_INFINITY) {
    limits.address_space = space.rlim_cur;
  }
  limits.huge_page_bytes = meminfo(info, "Hugepagesize").value_or(0);
  limits.huge_page_free = meminfo(info, "HugePages_Free").value_or(0);
  limits.transparent_shared =
      chosen_word(root + "/sys/kernel/mm/transparent_hugepage/shmem_enabled");
  return limits;
}

std::string mebibytes_text(std::uint64_t bytes) {
  return fmt::format("{} MiB", bytes >> 20U);
}

}  // namespace weft::info
