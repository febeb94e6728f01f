#include "tools/run/processes.hpp"

#include <algorithm>
#include <charconv>
#include <csignal>
#include <filesystem>
#include <map>
#include <sstream>
#include <string>
#include <thread>

#include <fmt/format.h>
#include <sys/wait.h>
#include <unistd.h>

#include "src/base/clock.hpp"
#include "src/base/process.hpp"
#include "src/base/whole_file.hpp"

namespace weft::run {
namespace {

// The pid of a /proc entry, or 0 for the other entries.
pid_t pid_of(const std::string& name) {
  pid_t pid = 0;
  const auto [end, code] = std::from_chars(name.data(), name.data() + name.size(), pid);
  return code == std::errc{} && end == name.data() + name.size() ? pid : 0;
}

// 0 for a zombie, and for a process that has gone in the meantime.
pid_t parent_of(pid_t pid) {
  const auto stat = read_process_stat(pid);
  return stat && !stat->has_ended() ? static_cast<pid_t>(stat->parent) : 0;
}

// This process as /proc numbers it. That is another number where /proc is of an outer pid namespace
// (pid_namespaces(7)), as after `unshare --pid` without a mount; 0 without /proc.
pid_t own_number() {
  std::error_code code;
  return pid_of(std::filesystem::read_symlink("/proc/self", code).string());
}

// The number by which this process may signal what an outer /proc calls `number`: the last of its
// NSpid (proc_pid_status(5)).
pid_t inner_number(pid_t number) {
  const std::string status = read_whole_file(fmt::format("/proc/{}/status", number)).value_or("");
  std::istringstream numbers(status.substr(std::min(status.find("NSpid:"), status.size())));
  std::string word;
  pid_t last = 0;
  for (numbers >> word; numbers >> last && numbers.peek() == '\t';) {
  }
  return last;
}

}  // namespace

std::vector<pid_t> descendants() {
  std::multimap<pid_t, pid_t> children;
  std::error_code code;
  for (std::filesystem::directory_iterator entry("/proc", code), end; entry != end;
       entry.increment(code)) {
    if (const pid_t pid = pid_of(entry->path().filename().string()); pid != 0) {
      children.emplace(parent_of(pid), pid);
    }
  }
  const pid_t self = own_number();
  if (self == 0) {
    return {};  // there is no telling who they are
  }
  std::vector<pid_t> found{self};
  for (std::size_t i = 0; i < found.size(); ++i) {
    const auto [first, last] = children.equal_range(found[i]);
    for (auto child = first; child != last; ++child) {
      found.push_back(child->second);
    }
  }
  found.erase(found.begin());
  if (self != ::getpid()) {
    std::ranges::transform(found, found.begin(), inner_number);
    std::erase(found, 0);
  }
  return found;
}

void signal_descendants(int signal_number) {
  for (const pid_t pid : descendants()) {
    ::kill(pid, signal_number);
  }
}

int end_child(pid_t pid, std::chrono::milliseconds limit) {
  constexpr std::chrono::seconds kKillTime{
      2};  // of a process that the kernel does not let go at once
  int wait_status = 0;
  bool is_killed = false;
  auto deadline = Clock::now() + limit;
  while (::waitpid(pid, &wait_status, WNOHANG) == 0) {
    if (Clock::now() < deadline) {
      std::this_thread::sleep_for(std::chrono::milliseconds(2));
    } else if (!is_killed) {
      is_killed = true;
      ::kill(pid, SIGKILL);
      deadline = Clock::now() + kKillTime;
    } else {
      return SIGKILL;
    }
  }
  return wait_status;
}

void kill_descendants(std::chrono::milliseconds limit) {
  const auto deadline = Clock::now() + limit;
  while (true) {
    signal_descendants(SIGKILL);
    pid_t reaped = 0;
    while ((reaped = ::waitpid(-1, nullptr, WNOHANG)) > 0) {
    }
    // No child means no descendant: those whose parent died have become children of ours.
    if (reaped < 0 || Clock::now() >= deadline) {
      return;
    }
    std::this_thread::sleep_for(std::chrono::milliseconds(5));
  }
}

}  // namespace weft::run
