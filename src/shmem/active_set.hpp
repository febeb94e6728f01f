// The collectives on OpenSHMEM's deprecated active sets: every 2^k-th PE, starting at a given one,
// with a work array of the user (pSync) for synchronization. Only shmem.h needs them.
//
// Threads: one thread of each PE of the set, in the same order. When a call returns, the words of
// pSync are restored (0), except for additions by PEs that are already in the next call.
// Errors: as in weft.h; weft_last_error returns the message.
#pragma once

#include <weft/collectives.h>

#include <cstddef>

namespace weft::api {

struct ActiveSet {
  int start = 0;
  int log2_stride = 0;
  int size = 0;
  long* psync = nullptr;  // kActiveSetWords words
};

// The value of SHMEM_*_SYNC_SIZE: the most that any of these needs.
inline constexpr std::size_t kActiveSetWords = 128;

int active_barrier(const char* name, const ActiveSet& set);
int active_sync(const char* name, const ActiveSet& set);
int active_alltoall(
    const char* name, const ActiveSet& set, void* dest, const void* source, std::size_t bytes);
int active_alltoalls(
    const char* name, const ActiveSet& set, void* dest, const void* source, weft_stride stride);
// `root` is a place in the set. Unlike a team's broadcast, it leaves the root's `dest` unchanged.
int active_broadcast(const char* name,
                     const ActiveSet& set,
                     void* dest,
                     const void* source,
                     std::size_t bytes,
                     int root);
int active_fcollect(
    const char* name, const ActiveSet& set, void* dest, const void* source, std::size_t bytes);
int active_collect(
    const char* name, const ActiveSet& set, void* dest, const void* source, std::size_t bytes);
int active_reduce(const char* name,
                  const ActiveSet& set,
                  void* dest,
                  const void* source,
                  weft_elements elements,
                  weft_reduction reduction);

}  // namespace weft::api
