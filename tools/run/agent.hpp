// One machine's part of a job: starts its PEs, reports their output and their ends, passes signals
// on, and leaves no process behind. weft-run forks one for its own machine and has ssh start
// others; there is no other way in which a PE is started.
//
// One thread, one process. It lives by its link to weft-run: when that closes, weft-run is dead,
// and all processes of the job are killed at once.
#pragma once

#include "src/bootstrap/connection.hpp"
#include "tools/run/inherited.hpp"

namespace weft::run {

// Runs the job that comes over `link`; `inherited` is what PEs get back. Returns the exit
// status of the agent's process.
[[nodiscard]] int run_agent(bootstrap::Connection link, const Inherited& inherited);

// The agent on another host: the link is standard input and output.
[[nodiscard]] int run_remote_agent(const Inherited& inherited);

}  // namespace weft::run
