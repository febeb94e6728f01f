#include "tools/run/agent_link.hpp"

#include <array>
#include <cerrno>

#include <sys/prctl.h>
#include <sys/socket.h>
#include <unistd.h>

#include "src/base/error.hpp"
#include "tools/run/agent.hpp"
#include "tools/run/options.hpp"

namespace weft::run {
namespace {

using bootstrap::Connection;

struct Ends {
  FileDescriptor ours;
  FileDescriptor theirs;
};

Ends make_link() {
  std::array<int, 2> ends{};
  if (::socketpair(AF_UNIX, SOCK_STREAM | SOCK_CLOEXEC, 0, ends.data()) != 0) {
    fail("socketpair failed: {}; raise the limit of open files (ulimit -n)", errno_words(errno));
  }
  return {FileDescriptor(ends[0]), FileDescriptor(ends[1])};
}

pid_t checked_fork() {
  const pid_t pid = ::fork();
  if (pid < 0) {
    fail("fork of an agent failed: {}; raise the limit of processes (ulimit -u)",
         errno_words(errno));
  }
  return pid;
}

[[noreturn]] void run_local_agent(Ends ends, const sigset_t& signal_mask) {
  // Its own group: the terminal's signals come to weft-run, which passes them on.
  ::setpgid(0, 0);
  ends.ours.reset();
  ::_exit(run_agent(Connection(std::move(ends.theirs), kAgentFrameBytesMax), signal_mask));
}

[[noreturn]] void exec_ssh(const Ends& ends,
                           const std::vector<std::string>& words,
                           const sigset_t& signal_mask) {
  ::setpgid(0, 0);
  // Its end closes the connection, by which the agent over there notices that weft-run is dead.
  ::prctl(PR_SET_PDEATHSIG, SIGTERM);
  ::dup2(ends.theirs.get(), STDIN_FILENO);
  ::dup2(ends.theirs.get(), STDOUT_FILENO);
  ::signal(SIGPIPE, SIG_DFL);
  ::pthread_sigmask(SIG_SETMASK, &signal_mask, nullptr);
  std::vector<char*> arguments;
  arguments.reserve(words.size() + 1);
  for (const std::string& word : words) {
    arguments.push_back(const_cast<char*>(word.c_str()));  // execvp(3) takes them so
  }
  arguments.push_back(nullptr);
  ::execvp(arguments[0], arguments.data());
  fmt::print(stderr, "weft-run: cannot run '{}': {}\n", words[0], errno_words(errno));
  ::_exit(kStatusNotFound);
}

}  // namespace

AgentLink start_local_agent(const sigset_t& signal_mask) {
  Ends ends = make_link();
  const pid_t pid = checked_fork();
  if (pid == 0) {
    run_local_agent(std::move(ends), signal_mask);
  }
  ::setpgid(pid, pid);
  return {.host = "this machine",
          .is_local = true,
          .pid = pid,
          .connection = Connection(std::move(ends.ours), kAgentFrameBytesMax),
          .pes = {}};
}

AgentLink start_ssh_agent(const std::vector<std::string>& ssh_command,
                          const std::string& host,
                          const std::string& agent_path,
                          const sigset_t& signal_mask) {
  std::vector<std::string> words = ssh_command;
  words.insert(words.end(), {host, agent_path, "--agent"});
  Ends ends = make_link();
  const pid_t pid = checked_fork();
  if (pid == 0) {
    exec_ssh(ends, words, signal_mask);
  }
  return {.host = host,
          .is_local = false,
          .pid = pid,
          .connection = Connection(std::move(ends.ours), kAgentFrameBytesMax),
          .pes = {}};
}

void send(AgentLink& link, AgentMessage type, std::span<const std::byte> payload) {
  if (link.is_open) {
    link.connection.send(bootstrap::share_frame(static_cast<std::uint16_t>(type), payload));
  }
}

}  // namespace weft::run
