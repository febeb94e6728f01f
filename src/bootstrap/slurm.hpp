// Joins a job that plain srun started (--mpi=none, or a Slurm without PMI), using the variables
// that Slurm sets for each task of a step (https://slurm.schedmd.com/srun.html, "OUTPUT ENVIRONMENT
// VARIABLES").
//
// PE 0, which is task 0 on the step's first host, hosts the rendezvous. On one host that is a unix
// socket, which only this user's processes may join; a secret derived from the step's variables
// keeps steps apart. On several hosts it is a port derived from the numbers of job and step, which
// other users can reach. Slurm gives a step nothing that only its user can read, so WEFT_JOB_SECRET
// must be set; srun passes it on to all tasks. WEFT_RENDEZVOUS selects another address.
#pragma once

#include <memory>

#include "src/base/config.hpp"
#include "src/bootstrap/bootstrap.hpp"
#include "src/bootstrap/hosted.hpp"

namespace weft::bootstrap {

// Whether this process is a task of a step of more than one. A batch script is none.
[[nodiscard]] bool has_slurm_step(const Lookup& lookup);

// Pure, except for the user id in a socket's name. Throws Error (InvalidArgument) naming the
// variable that is missing or invalid.
[[nodiscard]] HostedJob parse_slurm_job(const Config& config, const Lookup& lookup);

// Blocks until all PEs have joined. Throws as connect() does.
[[nodiscard]] std::unique_ptr<Bootstrap> connect_slurm(const Config& config, const Lookup& lookup);

}  // namespace weft::bootstrap
