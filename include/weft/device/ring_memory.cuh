// The GPU's access to a ring's memory (ring.hpp specifies each function). Far words are in pinned
// host memory, where a load takes 0.9 us; near words are in this GPU's own memory.
//
// store_slot itself orders nothing. A thread whose command refers to data that the CPU or a copy
// engine will read calls fence_release before it. Most commands do not, and save the microsecond
// that the fence takes.
#ifndef WEFT_DEVICE_RING_MEMORY_CUH
#define WEFT_DEVICE_RING_MEMORY_CUH

#include <weft/device/access.cuh>
#include <weft/device/ring.hpp>
#include <weft/device/scope.cuh>
#include <weft/device/standard.hpp>

namespace weft::device {

struct GpuMemory {
  static __device__ std::uint64_t load_far(const std::uint64_t* word) {
    // SYNC ring-word (pairs with src/proxy/ring_memory.hpp): ring.hpp names each use.
    return load_acquire(word);
  }

  static __device__ void store_far(std::uint64_t* word, std::uint64_t value) {
    // SYNC ring-word: pairs with the proxy's load_far.
    store_release(word, value);
  }

  // One load of 16 bytes, which is never torn: both words are from the same moment.
  static __device__ void load_far_pair(const std::uint64_t* pair,
                                       std::uint64_t& first,
                                       std::uint64_t& second) {
    load_relaxed_16(pair, first, second);
    // SYNC ring-word (pairs with src/proxy/ring_memory.hpp): a reply's value with its position.
    fence_acquire();
  }

  // Relaxed: this store depends on the value of the load, so it is issued after the load has
  // returned.
  static __device__ void store_far_after_load(std::uint64_t* word, std::uint64_t value) {
    store_relaxed(word, value);
  }

  // Relaxed: the value only decides whether a thread may claim or must poll. A thread that then
  // reads data calls fence_acquire after it (quiet).
  static __device__ std::uint64_t load_near(const std::uint64_t* word) {
    return load_relaxed(word);
  }

  static __device__ void store_near(std::uint64_t* word, std::uint64_t value) {
    // SYNC ring-near (pairs with include/weft/device/remote.cuh): what this thread saw far away.
    store_release_on_gpu(word, value);
  }

  static __device__ std::uint64_t add_near(std::uint64_t* word, std::uint64_t count) {
    return atomicAdd(reinterpret_cast<unsigned long long*>(word), count);
  }

  // One thread per converged group of a warp tries; otherwise thousands of threads would contend
  // for one word.
  static __device__ bool try_lock(std::uint64_t* lock) {
    const bool is_first =
        static_cast<int>(Warp::rank()) == __ffs(static_cast<int>(__activemask())) - 1;
    if (!is_first || load_relaxed(lock) != 0 ||
        atomicExch(reinterpret_cast<unsigned long long*>(lock), 1ULL) != 0) {
      return false;
    }
    fence_acquire();  // SYNC inbox-gpu-lock: pairs with unlock
    return true;
  }

  static __device__ void unlock(std::uint64_t* lock) {
    store_release_on_gpu(lock, 0);  // SYNC inbox-gpu-lock: pairs with try_lock
  }

  static __device__ void store_slot(std::uint64_t* to, const std::uint64_t* words) {
    for (std::uint32_t i = 0; i < kSlotWords; i += 2) {
      store_relaxed_pair(to + i, words[i], words[i + 1]);
    }
  }

  static __device__ void load_slot(const std::uint64_t* from, std::uint64_t* words) {
    for (std::uint32_t i = 0; i < kSlotWords; i += 2) {
      load_relaxed_pair(from + i, words[i], words[i + 1]);
    }
    // SYNC ring-word: the payload after the words.
    fence_acquire();
  }

  // SYNC ring-word (pairs with src/proxy/ring_memory.hpp): inbox.hpp names each use.
  static __device__ void fence_release() { ::weft::device::fence_release(); }

  static __device__ void pause() {}
};

}  // namespace weft::device

#endif  // WEFT_DEVICE_RING_MEMORY_CUH
