#include "src/base/control_groups.hpp"

#include <algorithm>
#include <charconv>
#include <sstream>
#include <string_view>

#include "src/base/whole_file.hpp"

namespace weft {
namespace {

// One hierarchy: where it is mounted, which of its groups is mounted there, and the files that hold
// the numbers.
struct Hierarchy {
  std::string mount;
  std::string mounted_group = "/";
  const char* limit_file;
  const char* used_file;
};

constexpr const char* kLimit2 = "/memory.max";
constexpr const char* kUsed2 = "/memory.current";
constexpr const char* kLimit1 = "/memory.limit_in_bytes";
constexpr const char* kUsed1 = "/memory.usage_in_bytes";
// Version 1 has the largest multiple of a page for "no limit".
constexpr std::uint64_t kNoLimit = std::uint64_t{1} << 60U;

// Empty for "max", and for a file that is not there.
std::optional<std::uint64_t> read_number(const std::string& path) {
  const std::string text = read_whole_file(path).value_or("");
  std::uint64_t number = 0;
  const auto [end, code] = std::from_chars(text.data(), text.data() + text.size(), number);
  return code == std::errc{} ? std::optional(number) : std::nullopt;
}

bool contains_word(std::string_view list, std::string_view word) {
  std::istringstream words{std::string(list)};
  for (std::string one; std::getline(words, one, ',');) {
    if (one == word) {
      return true;
    }
  }
  return false;
}

// A line of proc_pid_mountinfo(5): "30 23 0:26 /group /sys/fs/cgroup rw - cgroup2 cgroup rw".
std::optional<Hierarchy> parse_mount(const std::string& line) {
  std::istringstream words(line);
  std::string skipped;
  std::string group;
  std::string mount;
  words >> skipped >> skipped >> skipped >> group >> mount;
  while (words >> skipped && skipped != "-") {
  }
  std::string type;
  std::string options;
  words >> type >> skipped >> options;
  if (type == "cgroup2") {
    return Hierarchy{mount, group, kLimit2, kUsed2};
  }
  if (type == "cgroup" && contains_word(options, "memory")) {
    return Hierarchy{mount, group, kLimit1, kUsed1};
  }
  return std::nullopt;
}

std::vector<Hierarchy> find_hierarchies(const std::string& root) {
  std::vector<Hierarchy> found;
  std::istringstream lines(read_whole_file(root + "/proc/self/mountinfo").value_or(""));
  for (std::string line; std::getline(lines, line);) {
    if (const auto hierarchy = parse_mount(line)) {
      found.push_back(*hierarchy);
    }
  }
  if (found.empty()) {
    found = {{.mount = "/sys/fs/cgroup", .limit_file = kLimit2, .used_file = kUsed2},
             {.mount = "/sys/fs/cgroup/memory", .limit_file = kLimit1, .used_file = kUsed1}};
  }
  return found;
}

// The group of this process: a line of /proc/self/cgroup is "0::/group" for version 2,
// "9:memory:/group" for version 1.
std::string own_group(const std::string& root, bool is_unified) {
  std::istringstream lines(read_whole_file(root + "/proc/self/cgroup").value_or(""));
  for (std::string line; std::getline(lines, line);) {
    const std::size_t first = line.find(':');
    const std::size_t second = line.find(':', first + 1);
    if (second == std::string::npos) {
      continue;
    }
    const std::string_view controllers =
        std::string_view(line).substr(first + 1, second - first - 1);
    if (is_unified ? line.starts_with("0::") : contains_word(controllers, "memory")) {
      return line.substr(second + 1);
    }
  }
  return "/";
}

void add_groups(const std::string& root,
                const Hierarchy& hierarchy,
                std::vector<GroupMemory>& found) {
  std::string group = own_group(root, hierarchy.limit_file == kLimit2);
  if (hierarchy.mounted_group != "/" && group.starts_with(hierarchy.mounted_group)) {
    group.erase(0, hierarchy.mounted_group.size());
  }
  while (true) {
    group.erase(group.find_last_not_of('/') + 1);
    const std::string folder = hierarchy.mount + group;
    const auto limit = read_number(root + folder + hierarchy.limit_file);
    if (limit && *limit < kNoLimit) {
      found.push_back({.folder = folder,
                       .limit = *limit,
                       .used = read_number(root + folder + hierarchy.used_file)});
    }
    if (group.empty()) {
      return;
    }
    group.erase(std::min(group.find_last_of('/'), group.size()));
  }
}

}  // namespace

std::vector<GroupMemory> group_memory(const std::string& root) {
  std::vector<GroupMemory> found;
  for (const Hierarchy& hierarchy : find_hierarchies(root)) {
    add_groups(root, hierarchy, found);
  }
  return found;
}

}  // namespace weft
