// Joining a job that torchrun started, by the variables that it gives to each process: RANK,
// WORLD_SIZE, MASTER_ADDR, MASTER_PORT (https://pytorch.org/docs/stable/elastic/run.html).
//
// torchrun's own store listens on MASTER_PORT, so PE 0 hosts the rendezvous on MASTER_PORT + 1;
// WEFT_RENDEZVOUS=host:port chooses another. The secret is WEFT_JOB_SECRET if set. Otherwise it is
// derived from the job's variables: that keeps other jobs out by mistake, not an attacker.
#pragma once

#include <memory>
#include <string>

#include "src/base/config.hpp"
#include "src/bootstrap/bootstrap.hpp"
#include "src/bootstrap/socket.hpp"

namespace weft::bootstrap {

struct TorchrunJob {
  Pe pe;
  std::uint32_t pe_count = 0;
  Address rendezvous;
  std::string secret;
};

// All four variables are there.
[[nodiscard]] bool has_torchrun_variables(const Lookup& lookup);

// Pure. Throws Error (InvalidArgument) naming the variable that is missing or makes no sense.
[[nodiscard]] TorchrunJob parse_torchrun_job(const Config& config, const Lookup& lookup);

// Blocks until all PEs have come. Throws as connect() does.
[[nodiscard]] std::unique_ptr<Bootstrap> connect_torchrun(const Config& config,
                                                          const Lookup& lookup);

}  // namespace weft::bootstrap
