#include "src/runtime/liveness.hpp"

#include <algorithm>
#include <cerrno>
#include <csignal>
#include <fstream>
#include <iterator>
#include <sstream>
#include <string>

#include <poll.h>
#include <sys/syscall.h>
#include <unistd.h>

namespace weft::runtime {

bool is_process_alive(std::int64_t pid) {
  // A pidfd tells a zombie from a running process, which kill(pid, 0) does not (pidfd_open(2)).
  const auto descriptor = static_cast<int>(::syscall(SYS_pidfd_open, pid, 0));
  if (descriptor < 0) {
    return errno == ESRCH ? false : ::kill(static_cast<pid_t>(pid), 0) == 0 || errno != ESRCH;
  }
  pollfd ended{.fd = descriptor, .events = POLLIN, .revents = 0};
  const bool has_ended = ::poll(&ended, 1, 0) == 1;
  ::close(descriptor);
  return !has_ended;
}

std::uint64_t process_start_ticks(std::int64_t pid) {
  std::ifstream file("/proc/" + std::to_string(pid) + "/stat");
  const std::string text{std::istreambuf_iterator<char>(file), {}};
  // The second field is the program's name in parentheses, with any characters in it (proc(5)).
  const std::size_t name_end = text.rfind(')');
  if (name_end == std::string::npos) {
    return 0;
  }
  std::istringstream fields(text.substr(name_end + 1));
  std::string skipped;
  for (int field = 3; field < 22; ++field) {
    fields >> skipped;
  }
  std::uint64_t ticks = 0;
  return fields >> ticks ? ticks : 0;
}

std::uint64_t memory_limit(const std::string& root) {
  std::uint64_t limit = 0;
  std::ifstream meminfo(root + "/proc/meminfo");
  std::string name;
  std::uint64_t kib = 0;
  if (meminfo >> name >> kib && name == "MemTotal:") {
    limit = kib * 1024;
  }
  // cgroup v2, as a container sees its own group; "max" does not parse and means no limit.
  std::ifstream cgroup(root + "/sys/fs/cgroup/memory.max");
  if (std::uint64_t bytes = 0; cgroup >> bytes) {
    limit = limit == 0 ? bytes : std::min(limit, bytes);
  }
  return limit;
}

}  // namespace weft::runtime
