// The project's only source of host atomics on memory that it shares with other processes or with a
// GPU. Objects there are plain integers; each access names its order.
//
// Host code uses std::atomic_ref (C++20). Device code uses the functions of
// include/weft/device/access.cuh.
#pragma once

#include <atomic>
#include <cstdint>

namespace weft {

// All words that PEs share are lock-free: otherwise two processes could not share them.
static_assert(std::atomic_ref<std::uint16_t>::is_always_lock_free);
static_assert(std::atomic_ref<std::uint32_t>::is_always_lock_free);
static_assert(std::atomic_ref<std::uint64_t>::is_always_lock_free);

template <typename T>
using AtomicRef = std::atomic_ref<T>;

// Orders everything before it and everything after it, for all observers. ThreadSanitizer does not
// see it; docs/MEMORY_MODEL.md lists its uses.
inline void full_fence() {
  // SYNC full-fence: both sides of any pair across it.
  std::atomic_thread_fence(std::memory_order_seq_cst);
}

// Publishes earlier stores to a thread that sees a store after it.
inline void ordering_fence() {
  // SYNC ordering-fence: both sides of any pair across it.
  std::atomic_thread_fence(std::memory_order_acq_rel);
}

}  // namespace weft
