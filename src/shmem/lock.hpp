// OpenSHMEM's locks: a fair queue lock (after Mellor-Crummey and Scott) in the single `long` that a
// lock has on each PE. The upper half on PE 0 names the last PE in the queue. The lower half on
// each PE names its successor, and tells whether the PE still waits. So every PE waits on its own
// memory.
//
// Threads: any. A lock is owned by a PE, so two threads of one PE must not request it at the same
// time.
#pragma once

#include "src/api/errors.hpp"

namespace weft::api::shmem {

// Waits until this PE holds the lock.
int set_lock(const Caller& caller, long* lock);
// Completes this PE's writes (quiet), then passes the lock to the next PE in the queue.
int clear_lock(const Caller& caller, long* lock);
// 0 if this PE now holds the lock, 1 if another PE holds it; a negative status on an error.
int test_lock(const Caller& caller, long* lock);

}  // namespace weft::api::shmem
