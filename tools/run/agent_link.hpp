// weft-run's end of an agent: starts it, here by fork or elsewhere by ssh, and says how its process
// ended. One owner thread.
#pragma once

#include <csignal>
#include <cstdint>
#include <optional>
#include <string>
#include <vector>

#include <sys/types.h>

#include "src/bootstrap/connection.hpp"
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
[[nodiscard]] AgentLink start_local_agent(const sigset_t& signal_mask);

// `ssh_command` words, then the host, then weft-run's path and --agent. The agent has ended if ssh
// fails, so that an unreachable host shows as a closed link. Throws Error.
[[nodiscard]] AgentLink start_ssh_agent(const std::vector<std::string>& ssh_command,
                                        const std::string& host,
                                        const std::string& agent_path,
                                        const sigset_t& signal_mask);

void send(AgentLink& link, AgentMessage type, std::span<const std::byte> payload);

}  // namespace weft::run
