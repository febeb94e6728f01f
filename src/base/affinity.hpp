// The cores on which a thread may run (pthread_setaffinity_np(3)), by their numbers in the
// operating system, as in taskset.
//
// Any thread.
// No state; nothing changes but the thread that it is given.
#pragma once

#include <span>

#include <pthread.h>
#include <sched.h>

namespace weft {

// Returns 0, or the error's number: EINVAL if the process may run on none of `cores`. Each is below
// CPU_SETSIZE.
[[nodiscard]] inline int keep_on_cores(pthread_t thread, std::span<const int> cores) {
  cpu_set_t set;
  CPU_ZERO(&set);
  for (const int core : cores) {
    CPU_SET(static_cast<std::size_t>(core), &set);
  }
  return ::pthread_setaffinity_np(thread, sizeof set, &set);
}

}  // namespace weft
