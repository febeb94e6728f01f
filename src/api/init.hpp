// Joining and leaving the job, for weft_init, weft_init_with and shmem_init. A process is in one
// job at a time; after finalize it may join another.
//
// Threads: any; initialize, finalize and leave_job wait for each other.
#pragma once

#include <weft/weft.h>

#include "src/base/config.hpp"
#include "src/bootstrap/unique_id.hpp"

namespace weft::api {

// The differences between weft_init, weft_init_with and shmem_init.
struct InitOptions {
  const char* name;
  bool symmetric_globals = false;
  void (*adjust)(Config& config) = nullptr;  // reads further variables; may throw Error
  // Who this process is, if the program says so and no launcher does.
  const bootstrap::ExplicitJob* job = nullptr;
  bool says_errors = true;  // else the caller does
};

// Joins the job; returns WEFT_OK, or a status whose message is set and, if the options say so,
// printed.
int initialize(const InitOptions& options);

// Ends the job and this process, on behalf of the function `name`.
[[noreturn]] void global_exit(const char* name, int status);

// The process may join again: it keeps its connection to the launcher's other PEs until leave_job
// or its end, as launchers let a PE join once.
int finalize();
// No effect while a job runs.
void leave_job();

}  // namespace weft::api
