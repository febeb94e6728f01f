// Namespaces, mounts and processes of a node.
//
// Threads: one; everything in a child after fork() is its own.
#include "loom/cli/nodes.hpp"

#include <array>
#include <cerrno>
#include <csignal>
#include <cstdio>
#include <cstdlib>
#include <cstring>
#include <filesystem>
#include <fstream>
#include <sstream>

#include <fmt/format.h>
#include <netinet/in.h>
#include <sched.h>
#include <sys/mount.h>
#include <sys/prctl.h>
#include <sys/socket.h>
#include <sys/wait.h>
#include <unistd.h>

#include "loom/cli/system_files.hpp"
#include "loom/src/settings.hpp"

namespace loom {
namespace {

// An empty text, or what failed.
std::string separate(const std::string& name, const std::string& classes) {
  if (::unshare(CLONE_NEWNS | CLONE_NEWUTS) != 0) {
    return "namespaces: " + error_words(errno);
  }
  if (::sethostname(name.data(), name.size()) != 0) {
    return "its host name: " + error_words(errno);
  }
  if (::mount(nullptr, "/", nullptr, MS_REC | MS_PRIVATE, nullptr) != 0) {
    return "private mounts: " + error_words(errno);
  }
  if (::mount("loom", "/dev/shm", "tmpfs", 0, "mode=1777") != 0) {
    return "its /dev/shm: " + error_words(errno);
  }
  if (!classes.empty() && ::mount(classes.c_str(), "/sys/class", nullptr, MS_BIND, nullptr) != 0) {
    return "its /sys/class: " + error_words(errno);
  }
  return "";
}

void write_line(const char* path, const std::string& text) {
  std::ofstream(path) << text;
}

void set_variable(const char* name, const std::string& value) {
  ::setenv(name, value.c_str(), 1);  // NOLINT(concurrency-mt-unsafe): in a child with one thread
}

void set_environment(const Job& job, std::uint32_t node, std::uint32_t local, std::uint16_t port) {
  set_variable("LOOM_JOB", job.name);
  set_variable("LOOM_DIR", job.folder);
  set_variable("LOOM_PERSONA", job.persona);
  set_variable("LOOM_NODE", std::to_string(node));
  const auto path = variable("FI_PROVIDER_PATH");
  set_variable("FI_PROVIDER_PATH", path ? job.library + ":" + *path : job.library);
  if (!variable("FI_PROVIDER")) {
    set_variable("FI_PROVIDER", job.provider);
  }
  if (!job.machine_file.empty()) {
    set_variable("HWLOC_XMLFILE", job.machine_file);
  }
  // As torchrun tells its workers.
  const std::uint32_t rank = node * job.pes_per_node + local;
  set_variable("RANK", std::to_string(rank));
  set_variable("WORLD_SIZE", std::to_string(job.pe_count()));
  set_variable("LOCAL_RANK", std::to_string(local));
  set_variable("LOCAL_WORLD_SIZE", std::to_string(job.pes_per_node));
  set_variable("GROUP_RANK", std::to_string(node));
  set_variable("MASTER_ADDR", "127.0.0.1");
  set_variable("MASTER_PORT", std::to_string(port));
}

// Ends with its parent, also if that is killed.
void die_with(pid_t parent, int signal) {
  ::prctl(PR_SET_PDEATHSIG, signal);
  if (::getppid() != parent) {
    ::_exit(128 + SIGKILL);
  }
}

[[noreturn]] void become(const Job& job) {
  std::vector<std::string> words_of_command = job.command;
  std::vector<char*> argv;
  for (std::string& word : words_of_command) {
    argv.push_back(word.data());
  }
  argv.push_back(nullptr);
  ::execvp(argv[0], argv.data());
  const int error = errno;
  fmt::print(stderr, "loom: {} cannot be started: {}\n", job.command[0], error_words(error));
  ::_exit(error == ENOENT ? 127 : 126);
}

void say_how_it_ended(
    const Job& job, std::uint32_t node, std::uint32_t local, pid_t pid, int wait_status) {
  const std::uint32_t rank = node * job.pes_per_node + local;
  if (WIFSIGNALED(wait_status)) {
    const int signal = WTERMSIG(wait_status);
    fmt::print(stderr, "loom: rank {} on node{} (pid {}) was ended by signal {} ({})\n", rank, node,
               pid, signal,
               ::strsignal(signal));  // NOLINT(concurrency-mt-unsafe)
  } else {
    fmt::print(stderr, "loom: rank {} on node{} (pid {}) exited with status {}\n", rank, node, pid,
               WEXITSTATUS(wait_status));
  }
}

// What a supervisor sleeps for: SIGTERM, which says that the runner wants the end or is gone, and
// SIGCHLD. Blocked from the beginning, so that one that comes between a look and the sleep is kept.
sigset_t supervised_signals() {
  sigset_t signals;
  ::sigemptyset(&signals);
  ::sigaddset(&signals, SIGTERM);
  ::sigaddset(&signals, SIGCHLD);
  return signals;
}

int next_signal() {
  const sigset_t signals = supervised_signals();
  int signal = 0;
  ::sigwait(&signals, &signal);
  return signal;
}

// To all of a node's processes with what they have started: at the second time, or without a
// runner, for good.
void pass_on_the_end(const std::vector<pid_t>& pids, pid_t runner, bool is_first_time) {
  if (::getppid() != runner) {
    end_descendants();
    ::_exit(128 + SIGKILL);
  }
  for (const pid_t pid : pids) {
    ::kill(-pid, is_first_time ? SIGTERM : SIGKILL);
  }
}

// Waits for all of a node's processes; after the first that fails, the runner ends the others.
[[noreturn]] void supervise(const Job& job,
                            std::uint32_t node,
                            const std::vector<pid_t>& pids,
                            pid_t runner) {
  int status = 0;
  bool was_told_to_end = false;
  for (std::size_t left = pids.size(); left > 0;) {
    int wait_status = 0;
    const pid_t ended = ::waitpid(-1, &wait_status, WNOHANG);
    if (ended == 0) {
      if (next_signal() == SIGTERM) {
        pass_on_the_end(pids, runner, !was_told_to_end);
        was_told_to_end = true;
      }
      continue;
    }
    if (ended < 0) {
      break;
    }
    for (std::size_t local = 0; local < pids.size(); ++local) {
      if (pids[local] != ended) {
        continue;
      }
      --left;
      ::kill(-ended, SIGKILL);  // what it has left behind
      // Those that were told to end have not failed.
      if (exit_status(wait_status) != 0 && status == 0 && !was_told_to_end) {
        status = exit_status(wait_status);
        say_how_it_ended(job, node, static_cast<std::uint32_t>(local), ended, wait_status);
        ::kill(runner, SIGUSR1);
      }
    }
  }
  end_descendants();
  ::_exit(status);
}

[[noreturn]] void run_node(
    const Job& job, std::uint32_t node, Separation separation, std::uint16_t port, pid_t runner) {
  if (separation == Separation::Full) {
    const std::string classes =
        SystemFiles::class_folder(job.folder + "/" + job.name + ".sys", node);
    if (const std::string why = separate(fmt::format("node{}", node), classes); !why.empty()) {
      fmt::print(stderr, "loom: node{} cannot have {}\n", node, why);
      ::_exit(125);
    }
  }
  std::vector<pid_t> pids;
  const pid_t me = ::getpid();
  for (std::uint32_t local = 0; local < job.pes_per_node; ++local) {
    const pid_t pid = ::fork();
    if (pid == 0) {
      die_with(me, SIGKILL);
      ::setpgid(0, 0);
      const sigset_t signals = supervised_signals();
      ::sigprocmask(SIG_UNBLOCK, &signals, nullptr);
      set_environment(job, node, local, port);
      become(job);
    }
    ::setpgid(pid, pid);
    pids.push_back(pid);
  }
  ::signal(SIGINT, SIG_IGN);
  supervise(job, node, pids, runner);
}

// The parent of a process; 0 if there is no such process.
pid_t parent_of(const std::filesystem::path& process) {
  std::ifstream file(process / "stat");
  std::string text;
  std::getline(file, text);
  const std::size_t name_end = text.rfind(')');  // the name may hold anything
  char state = 0;
  pid_t parent = 0;
  if (name_end != std::string::npos) {
    std::istringstream(text.substr(name_end + 1)) >> state >> parent;
  }
  return parent;
}

std::vector<pid_t> children() {
  std::vector<pid_t> found;
  std::error_code ignored;
  for (const auto& entry : std::filesystem::directory_iterator("/proc", ignored)) {
    const std::string name = entry.path().filename().string();
    if (name.find_first_not_of("0123456789") == std::string::npos &&
        parent_of(entry.path()) == ::getpid()) {
      found.push_back(std::stoi(name));
    }
  }
  return found;
}

}  // namespace

void end_descendants() {
  // The children of a child become children of this process when that has ended.
  for (std::vector<pid_t> left = children(); !left.empty(); left = children()) {
    for (const pid_t pid : left) {
      ::kill(pid, SIGKILL);
    }
    for (const pid_t pid : left) {
      while (::waitpid(pid, nullptr, 0) < 0 && errno == EINTR) {
      }
    }
  }
}

int exit_status(int wait_status) {
  return WIFSIGNALED(wait_status) ? 128 + WTERMSIG(wait_status) : WEXITSTATUS(wait_status);
}

Separation find_separation() {
  const pid_t child = ::fork();
  if (child == 0) {
    if (::geteuid() != 0 && ::unshare(CLONE_NEWUSER) != 0) {
      ::_exit(1);
    }
    ::_exit(separate("node", "").empty() ? 0 : 2);
  }
  int status = 1;
  if (child > 0) {
    ::waitpid(child, &status, 0);
  }
  if (WIFEXITED(status) && WEXITSTATUS(status) == 0) {
    return Separation::Full;
  }
  fmt::print(stderr,
             "loom: no namespaces here: nodes have one host name, one /dev/shm and no NICs under "
             "/sys/class; "
             "run as root, or allow user namespaces (sysctl kernel.unprivileged_userns_clone=1)\n");
  return Separation::Nothing;
}

void enter_user_namespace() {
  const uid_t user = ::geteuid();
  const gid_t group = ::getegid();
  if (user == 0) {
    return;
  }
  if (::unshare(CLONE_NEWUSER) != 0) {
    throw Error("a user namespace cannot be made: " + error_words(errno));
  }
  write_line("/proc/self/setgroups", "deny");
  write_line("/proc/self/uid_map", fmt::format("{} {} 1", user, user));
  write_line("/proc/self/gid_map", fmt::format("{} {} 1", group, group));
}

// Above the ports that the kernel gives to outgoing connections (ip_local_port_range, 60999 by
// default): those of the processes that already try to connect would take a port from it before its
// owner listens.
std::uint16_t free_port() {
  constexpr std::uint32_t kFirst = 61000;
  constexpr std::uint32_t kCount = 4500;
  const auto start = static_cast<std::uint32_t>(::getpid());
  for (std::uint32_t i = 0; i < kCount; ++i) {
    const auto port = static_cast<std::uint16_t>(kFirst + (start + i * 7) % kCount);
    sockaddr_in address{};
    address.sin_family = AF_INET;
    address.sin_port = htons(port);
    const int socket = ::socket(AF_INET, SOCK_STREAM | SOCK_CLOEXEC, 0);
    const bool is_free =
        socket >= 0 && ::bind(socket, reinterpret_cast<sockaddr*>(&address), sizeof(address)) == 0;
    ::close(socket);
    if (is_free) {
      return port;
    }
  }
  throw Error(fmt::format("none of the TCP ports from {} on is free", kFirst));
}

pid_t start_node(const Job& job, std::uint32_t node, Separation separation, std::uint16_t port) {
  const pid_t runner = ::getpid();
  const pid_t child = ::fork();
  if (child == 0) {
    const sigset_t signals = supervised_signals();
    ::sigprocmask(SIG_BLOCK, &signals, nullptr);
    // Not the runner's handlers. An ignored SIGCHLD would not be sent at all.
    for (const int signal : {SIGUSR1, SIGTERM, SIGCHLD}) {
      ::signal(signal, SIG_DFL);
    }
    // What its processes leave behind becomes its own, so that it can end that too.
    ::prctl(PR_SET_CHILD_SUBREAPER, 1);
    die_with(runner, SIGTERM);
    run_node(job, node, separation, port, runner);
  }
  if (child < 0) {
    throw Error("a process for a node cannot be started: " + error_words(errno) +
                "; raise the limit (ulimit -u)");
  }
  return child;
}

}  // namespace loom
