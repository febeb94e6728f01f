#include "tools/run/processes.hpp"

#include <charconv>
#include <csignal>
#include <filesystem>
#include <map>
#include <string>
#include <thread>

#include <sys/wait.h>
#include <unistd.h>

#include "src/base/clock.hpp"
#include "src/base/process.hpp"

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
  std::vector<pid_t> found{::getpid()};
  for (std::size_t i = 0; i < found.size(); ++i) {
    const auto [first, last] = children.equal_range(found[i]);
    for (auto child = first; child != last; ++child) {
      found.push_back(child->second);
    }
  }
  found.erase(found.begin());
  return found;
}

void signal_descendants(int signal_number) {
  for (const pid_t pid : descendants()) {
    ::kill(pid, signal_number);
  }
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
