// weft-run's end of an agent: starts it, here by fork or elsewhere by ssh, and says how its process
// ended. One owner thread.
#pragma once

#include <cstdint>
#include <optional>
#include <string>
#include <vector>

#include <sys/types.h>

#include "src/bootstrap/connection.hpp"
#include "tools/run/inherited.hpp"
#include "tools/run/job.hpp"

namespace weft::run {

struct AgentLink {
  std::string host;  // "this machine", or as the user named it
  bool is_local = true;
  pid_t pid = 0;  // of the agent, or of ssh
  bootstrap::Connection connection;
  std::vector<std::uint32_t> pes;  // that it has to start
  bool is_open = true;
};

// Forks the agent of this machine. Call it before the process has other descriptors or threads.
[[nodiscard]] AgentLink start_local_agent(const Inherited& inherited);

// Runs the words of `remote_shell`, the host, weft-run's path and --agent. The agent has ended if
// ssh or srun fails, so that an unreachable host shows as a closed link. Throws Error.
[[nodiscard]] AgentLink start_remote_agent(const std::vector<std::string>& remote_shell,
                                           const std::string& host,
                                           const std::string& agent_path,
                                           const Inherited& inherited);

void send(AgentLink& link, AgentMessage type, std::span<const std::byte> payload);

}  // namespace weft::run
