// The GPU's way to a ring's memory (ring.hpp says what each function owes): far words lie in pinned host
// memory, 0.9 us away by a load; near ones in this GPU's own.
//
// store_slot itself orders nothing: who publishes a command whose data the CPU or a copy engine will read
// stands a fence_release before it, and the others, most of them, save its microsecond.
#ifndef WEFT_DEVICE_RING_MEMORY_CUH
#define WEFT_DEVICE_RING_MEMORY_CUH

#include <weft/device/access.cuh>
#include <weft/device/ring.hpp>

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

  // Relaxed: a number that only lets a thread go on to claim or look; what follows depends on it.
  static __device__ std::uint64_t load_near(const std::uint64_t* word) {
    return load_relaxed(word);
  }

  static __device__ void store_near(std::uint64_t* word, std::uint64_t value) {
    store_relaxed(word, value);
  }

  static __device__ std::uint64_t add_near(std::uint64_t* word, std::uint64_t count) {
    return atomicAdd(reinterpret_cast<unsigned long long*>(word), count);
  }

  static __device__ bool try_lock(std::uint64_t* lock) {
    if (load_relaxed(lock) != 0 ||
        atomicExch(reinterpret_cast<unsigned long long*>(lock), 1ULL) != 0) {
      return false;
    }
    fence_acquire();  // SYNC inbox-gpu-lock: pairs with unlock
    return true;
  }

  static __device__ void unlock(std::uint64_t* lock) {
    store_release(lock, 0);  // SYNC inbox-gpu-lock: pairs with try_lock
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
