// The collectives of OpenSHMEM's deprecated active sets: every 2^k-th PE from a first one on, and a
// work array of the user (pSync) in which they meet. Needed by the front door shmem.h alone.
//
// Threads: one of each PE of the set, in the same order. The words of pSync are as they were (0) when a
// call returns, except for what PEs of the next call have added already.
// Errors: as in weft.h; weft_last_error has the sentence.
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

// What SHMEM_*_SYNC_SIZE say: the most that any of these needs.
inline constexpr std::size_t kActiveSetWords = 128;

int active_barrier(const char* name, const ActiveSet& set);
int active_sync(const char* name, const ActiveSet& set);
int active_alltoall(
    const char* name, const ActiveSet& set, void* dest, const void* source, std::size_t bytes);
int active_alltoalls(
    const char* name, const ActiveSet& set, void* dest, const void* source, weft_stride stride);
// `root` is a place in the set. Unlike a team's broadcast, `dest` of the root is left alone.
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
