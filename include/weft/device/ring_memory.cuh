// The GPU's way to a ring's memory (ring.hpp says what each function owes): far words lie in pinned host
// memory, 0.9 us away by a load; near ones in this GPU's own.
//
// store_slot itself orders nothing: who publishes a command whose data the CPU or a copy engine will read
// stands a fence_release before it, and the others, most of them, save its microsecond.
#ifndef WEFT_DEVICE_RING_MEMORY_CUH
#define WEFT_DEVICE_RING_MEMORY_CUH

#include <weft/device/access.cuh>
#include <weft/device/ring.hpp>
#include <weft/device/scope.cuh>

#include <cstdint>

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

  // One load of 16 bytes, which is never torn: the two words of one moment.
  static __device__ void load_far_pair(const std::uint64_t* pair,
                                       std::uint64_t& first,
                                       std::uint64_t& second) {
    load_relaxed_16(pair, first, second);
    // SYNC ring-word (pairs with src/proxy/ring_memory.hpp): a reply's value with its position.
    fence_acquire();
  }

  // Relaxed: the load has returned, or there would be no store.
  static __device__ void store_far_after_load(std::uint64_t* word, std::uint64_t value) {
    store_relaxed(word, value);
  }

  // Relaxed: a number that only lets a thread go on to claim or look; who goes on to read data stands a
  // fence_acquire behind it (quiet).
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

  // Of the threads of a warp that are here together one tries: else thousands would, at one word.
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

  static __device__ void pause() {}
};

}  // namespace weft::device

#endif  // WEFT_DEVICE_RING_MEMORY_CUH
