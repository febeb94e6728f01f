// Joins a job that torchrun started, using the variables that it sets for each process: RANK,
// WORLD_SIZE, MASTER_ADDR, MASTER_PORT (https://pytorch.org/docs/stable/elastic/run.html).
//
// PE 0 hosts the rendezvous. On one host that is a unix socket, which only this user's processes
// may join: the kernel authenticates them, and a secret derived from the job's variables keeps
// other jobs of the user apart. On several hosts it is MASTER_PORT + 1 (torchrun's own store has
// MASTER_PORT), which other users can reach, so WEFT_JOB_SECRET must be set: everything that
// torchrun provides is public, including its store. WEFT_RENDEZVOUS selects another address.
//
// When a PE fails, torchrun terminates the others, on the PE's own host at once. It does not do so
// when a PE exits normally or is lost in another way. So each PE watches the rendezvous
// (hosted.hpp).
#pragma once

#include <memory>

#include "src/base/config.hpp"
#include "src/bootstrap/bootstrap.hpp"
#include "src/bootstrap/hosted.hpp"

namespace weft::bootstrap {

// Whether all four variables are set.
[[nodiscard]] bool has_torchrun_variables(const Lookup& lookup);

// Pure, except for the user id in a socket's name. Throws Error (InvalidArgument) naming the
// variable that is missing or invalid.
[[nodiscard]] HostedJob parse_torchrun_job(const Config& config, const Lookup& lookup);

// Blocks until all PEs have joined. Throws as connect() does.
[[nodiscard]] std::unique_ptr<Bootstrap> connect_torchrun(const Config& config,
                                                          const Lookup& lookup);

}  // namespace weft::bootstrap
