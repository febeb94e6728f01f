// What weft-run and its agents say to each other: one agent per machine starts, watches and ends
// the PEs there. Frames are those of the bootstrap layer, payloads its fields. Pure.
//
// The job's secret travels in the Job frame only, never on a command line.
#pragma once

#include <cstdint>
#include <span>
#include <string>
#include <utility>
#include <vector>

#include "src/bootstrap/bootstrap.hpp"

namespace weft::run {

using bootstrap::Blob;

enum class AgentMessage : std::uint16_t {
  // To the agent.
  Job = 101,
  Signal = 102,  // {number}: to every PE's process group
  End = 103,     // SIGTERM to all processes of the job, SIGKILL after the grace
  // From the agent.
  Started = 111,  // {pe, pid}
  Exited = 112,   // {pe, pid, wait status}
  Output = 113,   // {pe, stream 1 or 2, bytes}
  Failed = 114,   // {exit status, text}: a PE could not be started
};

inline constexpr std::size_t kAgentFrameBytesMax = std::size_t{64} << 20U;

struct PeTask {
  std::uint32_t pe = 0;
  std::string host;           // for messages
  std::string net_namespace;  // path to enter first; empty for none
};

enum class Binding : std::uint32_t { Auto, Core, Numa, None };

// Throws Error (InvalidArgument) for another name.
[[nodiscard]] Binding parse_binding(const std::string& name);

// All that an agent must know. The environment is added to the agent's own.
struct Job {
  std::vector<PeTask> tasks;
  std::vector<std::string> command;
  std::vector<std::pair<std::string, std::string>> environment;  // the same for all PEs
  std::string directory;
  std::string user_namespace;     // path to enter before the tasks' net namespaces; empty for none
  std::string private_directory;  // removed by the agent if weft-run dies; empty for none
  Binding binding = Binding::Auto;
  std::uint32_t grace_ms = 2000;
  bool captures_output = false;
  bool inherits_stdin = false;  // PE 0 reads the agent's standard input
};

[[nodiscard]] Blob encode_job(const Job& job);
// Throws Error (InvalidArgument).
[[nodiscard]] Job decode_job(std::span<const std::byte> payload);

// "was killed by signal 9 (Killed)", "exited with status 5".
[[nodiscard]] std::string describe_wait_status(int wait_status);

// What weft-run returns for it: the status, or 128 + signal.
[[nodiscard]] int exit_status_of(int wait_status);

}  // namespace weft::run
