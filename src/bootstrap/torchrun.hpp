// Joining a job that torchrun started, by the variables that it gives to each process: RANK,
// WORLD_SIZE, MASTER_ADDR, MASTER_PORT (https://pytorch.org/docs/stable/elastic/run.html).
//
// PE 0 hosts the rendezvous. On one host that is a unix socket, which only this user's processes may join: the
// kernel says who they are, and a secret made of the job's variables keeps his other jobs apart. On several
// hosts it is MASTER_PORT + 1 (torchrun's own store has MASTER_PORT), which strangers can reach, so
// WEFT_JOB_SECRET has to be set: all that torchrun gives is public, its store included.
// WEFT_RENDEZVOUS chooses another place.
//
// torchrun ends the others when a PE fails, on the PE's own host at once, and not when one ends well or is
// lost otherwise. So each PE watches the rendezvous (news_watch.hpp).
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

// Pure, but for the user's number in a socket's name. Throws Error (InvalidArgument) naming the variable that is
// missing or makes no sense.
[[nodiscard]] TorchrunJob parse_torchrun_job(const Config& config, const Lookup& lookup);

// Blocks until all PEs have come. Throws as connect() does.
[[nodiscard]] std::unique_ptr<Bootstrap> connect_torchrun(const Config& config,
                                                          const Lookup& lookup);

}  // namespace weft::bootstrap
