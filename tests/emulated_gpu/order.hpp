// What ThreadSanitizer is told of the order of memory on a GPU, which it does not see in fibers and
// does not know of fences. Without it all of this is nothing.
//
// Orders are those of CUDA and PTX: barriers and __syncwarp order what threads did; other calls of
// a warp (__shfl_sync, ballots) do not. A fence orders as C++'s stand-alone fences do: what came
// before it, before whoever sees a later store of the thread and fences itself. Other processes, so
// other PEs, are not seen.
//
// Threads: those of kernels.
#pragma once

#include <cstddef>
#include <vector>

namespace weft_emulated::order {

// How many words of its loads a thread remembers until its next fence.
inline constexpr std::size_t kLoadedMax = 64;

// What is kept for a thread.
struct Orders {
  std::vector<const void*> loaded;  // since its last fence
  bool has_fenced = false;
  void* at_fence = nullptr;  // ThreadSanitizer's fiber
};

// What this thread did is before whoever takes `at` later.
void give(const void* at);
void take(const void* at);

// Of a word that threads share: before a store and behind a load.
void stores(const void* word);
void loads(const void* word);

void fence();

}  // namespace weft_emulated::order
