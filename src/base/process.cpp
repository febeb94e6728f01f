#include "src/base/process.hpp"

#include <cerrno>
#include <csignal>
#include <sstream>
#include <string>

#include <poll.h>
#include <sys/syscall.h>
#include <unistd.h>

#include "src/base/whole_file.hpp"

namespace weft {

std::optional<ProcessStat> parse_process_stat(std::string_view text) {
  // The second field is the program's name in parentheses, which may contain any characters.
  const std::size_t name_end = text.rfind(')');
  if (name_end == std::string_view::npos) {
    return std::nullopt;
  }
  std::istringstream fields{std::string(text.substr(name_end + 1))};
  ProcessStat stat;
  fields >> stat.state >> stat.parent;
  std::string skipped;
  for (int field = 5; field < 22; ++field) {
    fields >> skipped;
  }
  return fields >> stat.start_ticks ? std::optional(stat) : std::nullopt;
}

std::optional<ProcessStat> read_process_stat(std::int64_t pid) {
  const auto text = read_whole_file("/proc/" + std::to_string(pid) + "/stat");
  return text ? parse_process_stat(*text) : std::nullopt;
}

bool is_process_alive(std::int64_t pid) {
  // A pidfd distinguishes a zombie from a running process, which kill(pid, 0) does not
  // (pidfd_open(2)).
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
  const auto stat = read_process_stat(pid);
  return stat ? stat->start_ticks : 0;
}

}  // namespace weft
