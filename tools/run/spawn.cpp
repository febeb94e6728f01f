#include "tools/run/spawn.hpp"

#include <array>
#include <cerrno>
#include <cstdlib>
#include <string>
#include <vector>

#include <fcntl.h>
#include <sched.h>
#include <sys/prctl.h>
#include <sys/stat.h>
#include <sys/wait.h>
#include <unistd.h>

#include "src/base/error.hpp"
#include "src/base/open_files.hpp"
#include "tools/run/options.hpp"

namespace weft::run {
namespace {

struct Pipe {
  FileDescriptor read;
  FileDescriptor write;
};

Pipe make_pipe() {
  std::array<int, 2> ends{};
  if (::pipe2(ends.data(), O_CLOEXEC) != 0) {
    fail("pipe2 failed: {}; {}", errno_words(errno), open_files_hint(2));
  }
  return {FileDescriptor(ends[0]), FileDescriptor(ends[1])};
}

// Everything below runs in the child. A failure is a text, sent through the report pipe.

FileDescriptor open_namespace(const std::string& path) {
  FileDescriptor opened(::open(path.c_str(), O_RDONLY | O_CLOEXEC));
  if (!opened.is_open()) {
    fail("cannot open the lab's namespace {}: {}; is the lab up, and yours?", path,
         errno_words(errno));
  }
  return opened;
}

bool is_own_user_namespace(int fd) {
  struct stat own{};
  struct stat other{};
  return ::stat("/proc/self/ns/user", &own) == 0 && ::fstat(fd, &other) == 0 &&
         own.st_dev == other.st_dev && own.st_ino == other.st_ino;
}

void enter(int fd, int type, const std::string& path) {
  if (::setns(fd, type) != 0) {
    fail("cannot enter the lab's namespace {}: {}; run weft-run as the user who made the lab", path,
         errno_words(errno));
  }
}

void enter_namespaces(const Job& job, const PeTask& task) {
  if (task.net_namespace.empty()) {
    return;
  }
  const FileDescriptor net = open_namespace(task.net_namespace);
  if (!job.user_namespace.empty()) {
    const FileDescriptor user = open_namespace(job.user_namespace);
    if (!is_own_user_namespace(user.get())) {
      enter(user.get(), CLONE_NEWUSER, job.user_namespace);
    }
  }
  enter(net.get(), CLONE_NEWNET, task.net_namespace);
}

void redirect(const Job& job, const PeTask& task, const Pipe& out, const Pipe& err) {
  if (!(job.inherits_stdin && task.pe == 0)) {
    const FileDescriptor null(::open("/dev/null", O_RDONLY | O_CLOEXEC));
    ::dup2(null.get(), STDIN_FILENO);
  }
  if (job.captures_output) {
    ::dup2(out.write.get(), STDOUT_FILENO);
    ::dup2(err.write.get(), STDERR_FILENO);
  }
}

void set_environment(const Job& job, const PeTask& task) {
  for (const auto& [name, value] : job.environment) {
    ::setenv(name.c_str(), value.c_str(), 1);  // NOLINT(concurrency-mt-unsafe): one thread
  }
  // NOLINTNEXTLINE(concurrency-mt-unsafe): one thread
  ::setenv("WEFT_PE", std::to_string(task.pe).c_str(), 1);
}

// After the namespaces: entering a user namespace clears it. A parent that died before this call
// sends no signal any more, so the child looks for itself.
void die_with_parent(pid_t parent) {
  ::prctl(PR_SET_PDEATHSIG, SIGKILL);
  if (::getppid() != parent) {
    ::_exit(128 + SIGKILL);
  }
}

[[noreturn]] void report(int fd, char kind, const std::string& text) {
  const std::string message = kind + text;
  static_cast<void>(!::write(fd, message.data(), message.size()));
  ::_exit(127);
}

void enter_directory(const std::string& directory) {
  if (!directory.empty() && ::chdir(directory.c_str()) != 0) {
    fail("cannot enter the directory {}: {}; PEs run where weft-run was started", directory,
         errno_words(errno));
  }
}

[[noreturn]] void exec_command(const std::vector<std::string>& command, int report_fd) {
  std::vector<char*> words;
  words.reserve(command.size() + 1);
  for (const std::string& word : command) {
    words.push_back(const_cast<char*>(word.c_str()));  // execvp(3) takes them so, and leaves them
  }
  words.push_back(nullptr);
  ::execvp(words[0], words.data());
  const bool is_absent = errno == ENOENT || errno == ENOTDIR;
  report(report_fd, is_absent ? 'n' : 'x',
         fmt::format("cannot run '{}': {}", command[0],
                     is_absent ? "no such command" : errno_words(errno)));
}

struct Child {
  const Job& job;
  const PeTask& task;
  std::uint32_t index;
  const CoreBinder& binder;
  const Inherited& inherited;
  pid_t parent;
};

[[noreturn]] void run_child(const Child& child, const Pipe& out, const Pipe& err, int report_fd) {
  try {
    ::setpgid(0, 0);
    die_with_parent(child.parent);
    enter_namespaces(child.job, child.task);
    die_with_parent(child.parent);
    if (!child.binder.bind(child.index)) {
      fail("binding PE {} to its cores failed: {}; use --bind none", child.task.pe,
           errno_words(errno));
    }
    enter_directory(child.job.directory);
    set_environment(child.job, child.task);
    redirect(child.job, child.task, out, err);
    give_back(child.inherited);
  } catch (const std::exception& error) {
    report(report_fd, 'f', error.what());
  }
  exec_command(child.job.command, report_fd);
}

// What the child could not do; empty once exec has closed the pipe.
std::string read_report(int fd) {
  std::string text;
  std::array<char, 512> bytes{};
  while (true) {
    const ssize_t count = ::read(fd, bytes.data(), bytes.size());
    if (count > 0) {
      text.append(bytes.data(), static_cast<std::size_t>(count));
    } else if (count == 0 || errno != EINTR) {
      return text;
    }
  }
}

}  // namespace

StartedPe start_pe(const Job& job,
                   std::uint32_t index,
                   const CoreBinder& binder,
                   const Inherited& inherited) {
  const PeTask& task = job.tasks[index];
  Pipe reports = make_pipe();
  Pipe out = job.captures_output ? make_pipe() : Pipe{};
  Pipe err = job.captures_output ? make_pipe() : Pipe{};
  const pid_t parent = ::getpid();
  const pid_t pid = ::fork();
  if (pid < 0) {
    fail("fork of PE {} failed: {}; raise the limit of processes (ulimit -u, pids.max of a cgroup)",
         task.pe, errno_words(errno));
  }
  if (pid == 0) {
    run_child({job, task, index, binder, inherited, parent}, out, err, reports.write.get());
  }
  ::setpgid(pid, pid);  // both do it, so that it is done whoever runs first
  reports.write.reset();
  const std::string why = read_report(reports.read.get());
  if (!why.empty()) {
    ::waitpid(pid, nullptr, 0);
    // The first letter says which status a shell would return.
    const int status = why[0] == 'n'   ? kStatusNotFound
                       : why[0] == 'x' ? kStatusCannotExecute
                                       : kStatusFailure;
    throw StartError(status, why.substr(1));
  }
  return {.pid = pid, .out = std::move(out.read), .err = std::move(err.read)};
}

}  // namespace weft::run
