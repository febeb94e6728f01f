// OpenSHMEM's locks: a fair queue of PEs (after Mellor-Crummey and Scott) in the one `long` that a lock
// is on each PE. The upper half of PE 0's says who is last in the queue; the lower half of each PE's own
// says who comes behind it, and whether it still waits. So everybody waits on memory of its own.
//
// Threads: any; a lock belongs to a PE, so that two threads of one PE must not ask for it at once.
#pragma once

#include "src/api/errors.hpp"

namespace weft::api::shmem {

// Waits until the lock is this PE's.
int set_lock(const Caller& caller, long* lock);
// Completes what this PE has written (quiet), then gives the lock to the next in the queue.
int clear_lock(const Caller& caller, long* lock);
// 0 if the lock is now this PE's, 1 if another PE has it; a negative status on an error.
int test_lock(const Caller& caller, long* lock);

}  // namespace weft::api::shmem
