#include "tools/run/agent_link.hpp"

#include <array>
#include <cerrno>
#include <filesystem>

#include <sys/prctl.h>
#include <sys/socket.h>
#include <unistd.h>

#include "src/base/error.hpp"
#include "src/base/open_files.hpp"
#include "tools/run/agent.hpp"
#include "tools/run/options.hpp"
#include "tools/run/output.hpp"
#include "tools/run/shell_words.hpp"

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
    fail("socketpair failed: {}; {}", errno_words(errno), open_files_hint(2));
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

[[noreturn]] void run_local_agent(Ends ends, const Inherited& inherited) {
  // Its own group: the terminal's signals come to weft-run, which passes them on.
  ::setpgid(0, 0);
  ends.ours.reset();
  ::_exit(run_agent(Connection(std::move(ends.theirs), kAgentFrameBytesMax), inherited));
}

[[noreturn]] void exec_remote_shell(const Ends& ends,
                                    const std::vector<std::string>& words,
                                    const Inherited& inherited) {
  ::setpgid(0, 0);
  // Its end closes the connection, by which the agent over there notices that weft-run is dead.
  ::prctl(PR_SET_PDEATHSIG, SIGTERM);
  ::dup2(ends.theirs.get(), STDIN_FILENO);
  ::dup2(ends.theirs.get(), STDOUT_FILENO);
  give_back(inherited);
  std::vector<char*> arguments;
  arguments.reserve(words.size() + 1);
  for (const std::string& word : words) {
    arguments.push_back(const_cast<char*>(word.c_str()));  // execvp(3) takes them so
  }
  arguments.push_back(nullptr);
  ::execvp(arguments[0], arguments.data());
  say_now(fmt::format("cannot run '{}': {}", words[0], errno_words(errno)));
  ::_exit(kStatusNotFound);
}

}  // namespace

AgentLink start_local_agent(const Inherited& inherited) {
  Ends ends = make_link();
  const pid_t pid = checked_fork();
  if (pid == 0) {
    run_local_agent(std::move(ends), inherited);
  }
  ::setpgid(pid, pid);
  return {.host = "this machine",
          .is_local = true,
          .pid = pid,
          .connection = Connection(std::move(ends.ours), kAgentFrameBytesMax),
          .pes = {}};
}

AgentLink start_remote_agent(const std::vector<std::string>& remote_shell,
                             const std::string& host,
                             const std::string& agent_path,
                             const Inherited& inherited) {
  std::vector<std::string> words = remote_shell;
  // ssh joins what follows the host for the shell there; srun starts it as it is.
  const bool is_srun = std::filesystem::path(words.front()).filename() == "srun";
  words.insert(words.end(), {host, is_srun ? agent_path : quote_for_shell(agent_path), "--agent"});
  Ends ends = make_link();
  const pid_t pid = checked_fork();
  if (pid == 0) {
    exec_remote_shell(ends, words, inherited);
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
