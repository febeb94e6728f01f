// Turns what the user asked for into a job for each machine: who runs where, where PEs meet, and
// the environment that they get.
#pragma once

#include <cstdint>
#include <string>
#include <vector>

#include "src/bootstrap/socket.hpp"
#include "tools/run/job.hpp"
#include "tools/run/options.hpp"

namespace weft::run {

// The PEs of one machine. An empty host is this one.
struct MachinePlan {
  std::string host;
  Job job;
};

struct Plan {
  std::vector<MachinePlan> machines;
  bootstrap::Address rendezvous;  // where to listen
  std::string remote_shell;  // words that go before a host and a command for it: ssh's or srun's
  std::string job_id;
  std::string secret;
  std::uint32_t pe_count = 0;
};

// Reads the lab's state or the hostfile, and makes the private directory of a lab's rendezvous.
// Throws Error with one line for each thing that a user can get wrong.
[[nodiscard]] Plan make_plan(const Options& options);

// The variables that every PE gets, once the rendezvous listens at `rendezvous`; WEFT_PE is added
// by the agent.
void set_job_environment(Plan& plan, const Options& options, const bootstrap::Address& rendezvous);

}  // namespace weft::run
