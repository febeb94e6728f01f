#include "tools/info/doctor/child.hpp"

#include <algorithm>
#include <array>
#include <cerrno>
#include <csignal>
#include <cstdio>
#include <sstream>

#include <fcntl.h>
#include <poll.h>
#include <spawn.h>
#include <sys/mman.h>
#include <sys/wait.h>
#include <unistd.h>

#include "src/base/clock.hpp"
#include "src/base/error.hpp"
#include "src/base/file_descriptor.hpp"

extern "C" {
extern char** environ;  // NOLINT: the name is POSIX's
}

namespace weft::info {
namespace {

constexpr std::uint64_t kMillisecondNs = 1'000'000;
constexpr int kExitMs = 5000;

struct Pipe {
  FileDescriptor read_end;
  FileDescriptor write_end;
};

Pipe make_pipe() {
  std::array<int, 2> ends{};
  if (::pipe2(ends.data(), O_CLOEXEC) != 0) {
    fail("pipe failed: {}; raise the limit of open files (ulimit -n)", errno_words(errno));
  }
  return {FileDescriptor(ends[0]), FileDescriptor(ends[1])};
}

// In a process group of its own, so that what it forks is ended with it.
pid_t start(const ChildPlan& plan,
            const Pipe& input,
            const Pipe& output,
            const FileDescriptor& errors) {
  std::vector<std::string> words{"weft-info"};
  words.insert(words.end(), plan.arguments.begin(), plan.arguments.end());
  std::vector<char*> argv;
  for (std::string& word : words) {
    argv.push_back(word.data());
  }
  argv.push_back(nullptr);
  posix_spawn_file_actions_t actions;
  posix_spawnattr_t attributes;
  ::posix_spawn_file_actions_init(&actions);
  ::posix_spawnattr_init(&attributes);
  ::posix_spawn_file_actions_adddup2(&actions, input.read_end.get(), STDIN_FILENO);
  ::posix_spawn_file_actions_adddup2(&actions, output.write_end.get(), STDOUT_FILENO);
  ::posix_spawn_file_actions_adddup2(&actions, errors.get(), STDERR_FILENO);
  ::posix_spawnattr_setflags(&attributes, POSIX_SPAWN_SETPGROUP);
  ::posix_spawnattr_setpgroup(&attributes, 0);
  pid_t child = -1;
  const int error =
      ::posix_spawn(&child, "/proc/self/exe", &actions, &attributes, argv.data(), environ);
  ::posix_spawn_file_actions_destroy(&actions);
  ::posix_spawnattr_destroy(&attributes);
  if (error != 0) {
    fail("starting a step of the doctor failed: {}; raise the limit of processes (ulimit -u)",
         errno_words(error));
  }
  return child;
}

void give_input(FileDescriptor to, const std::string& text) {
  std::size_t done = 0;
  while (done < text.size()) {
    const ssize_t count = ::write(to.get(), text.data() + done, text.size() - done);
    if (count <= 0) {
      return;  // it has ended, or reads no input
    }
    done += static_cast<std::size_t>(count);
  }
}

// Hands out whole lines; false once the limit is over, true at the end of the output.
bool read_lines(int from,
                std::uint64_t deadline_ns,
                const std::function<void(const std::string&)>& on_line) {
  std::string buffer;
  std::array<char, 4096> bytes{};
  for (;;) {
    const std::uint64_t now = now_ns();
    if (now >= deadline_ns) {
      return false;
    }
    pollfd waited{from, POLLIN, 0};
    const auto left_ms = static_cast<int>((deadline_ns - now) / kMillisecondNs + 1);
    if (::poll(&waited, 1, left_ms) <= 0) {
      continue;
    }
    const ssize_t count = ::read(from, bytes.data(), bytes.size());
    if (count <= 0) {
      return true;
    }
    buffer.append(bytes.data(), static_cast<std::size_t>(count));
    for (std::size_t end = buffer.find('\n'); end != std::string::npos; end = buffer.find('\n')) {
      on_line(buffer.substr(0, end));
      buffer.erase(0, end + 1);
    }
  }
}

// A step may ask the library for more than the user wants to read.
void print_errors(const FileDescriptor& errors, bool with_info) {
  std::string text(static_cast<std::size_t>(std::max<off_t>(::lseek(errors.get(), 0, SEEK_END), 0)),
                   '\0');
  text.resize(static_cast<std::size_t>(
      std::max<ssize_t>(::pread(errors.get(), text.data(), text.size(), 0), 0)));
  std::istringstream lines(text);
  for (std::string line; std::getline(lines, line);) {
    if (with_info || !line.starts_with("weft: ") || line.find(": info: ") == std::string::npos) {
      static_cast<void>(std::fputs((line + "\n").c_str(), stderr));
    }
  }
}

// It has closed its output and is about to end. Not reaped yet: its number stays its own.
void wait_for_exit(pid_t child) {
  for (int ms = 0; ms < kExitMs; ++ms) {
    siginfo_t info{};
    if (::waitid(P_PID, static_cast<id_t>(child), &info, WEXITED | WNOHANG | WNOWAIT) != 0 ||
        info.si_pid == child) {
      return;
    }
    ::usleep(1000);
  }
}

}  // namespace

ChildEnd run_child(const ChildPlan& plan, const std::function<void(const std::string&)>& on_line) {
  Pipe input = make_pipe();
  Pipe output = make_pipe();
  const FileDescriptor errors(::memfd_create("weft-doctor-stderr", MFD_CLOEXEC));
  if (!errors.is_open()) {
    fail("memfd_create failed: {}", errno_words(errno));
  }
  const auto before = ::signal(SIGPIPE, SIG_IGN);  // for a child that reads no input
  const pid_t child = start(plan, input, output, errors);
  input.read_end.reset();
  output.write_end.reset();
  give_input(std::move(input.write_end), plan.input);
  ::signal(SIGPIPE, before);
  ChildEnd end;
  end.was_late =
      !read_lines(output.read_end.get(), now_ns() + plan.limit_s * 1000 * kMillisecondNs, on_line);
  if (!end.was_late) {
    wait_for_exit(child);
  }
  // Also what it has left behind.
  ::kill(-child, SIGKILL);
  int status = 0;
  while (::waitpid(child, &status, 0) < 0 && errno == EINTR) {
  }
  print_errors(errors, plan.with_info);
  end.status = WIFEXITED(status) ? WEXITSTATUS(status) : -1;
  end.signal = WIFSIGNALED(status) ? WTERMSIG(status) : 0;
  return end;
}

}  // namespace weft::info
