// Taking and giving back slots of the segment: a process id claims one, an odd generation opens it.
// A slot whose process has died is free.
//
// Threads: any, of any process.
#pragma once

#include <array>
#include <atomic>
#include <cstddef>
#include <cstdint>

#include "loom/src/segment.hpp"

namespace loom {

template <typename Slot>
bool is_open(const Slot& slot, std::uint32_t generation) {
  // SYNC slot-open: the fields after the generation.
  return (generation & 1U) != 0 && slot.generation.load(std::memory_order_acquire) == generation;
}

// Claims a free slot for `pid`, searching from `from` on. Its count if there is none. It is closed
// until open_slot().
template <typename Slot, std::size_t kCount>
std::size_t claim_slot(std::array<Slot, kCount>& slots, std::uint32_t pid, std::size_t from) {
  for (std::size_t i = 0; i < kCount; ++i) {
    const std::size_t index = (from + i) % kCount;
    Slot& slot = slots[index];
    std::uint32_t owner =
        slot.pid.load(std::memory_order_relaxed);  // relaxed: the exchange decides
    const bool is_free = owner == 0 || !is_alive(owner);
    // SYNC slot-free: the generation that its last owner closed, before this one looks at it.
    if (!is_free || !slot.pid.compare_exchange_strong(owner, pid, std::memory_order_acquire,
                                                      std::memory_order_relaxed)) {
      continue;
    }
    const std::uint32_t generation =
        slot.generation.load(std::memory_order_relaxed);  // relaxed: mine
    if ((generation & 1U) != 0) {
      slot.generation.store(generation + 1,
                            std::memory_order_relaxed);  // relaxed: its owner is dead
    }
    return index;
  }
  return kCount;
}

// Returns the generation that opens it.
template <typename Slot>
std::uint32_t open_slot(Slot& slot) {
  const std::uint32_t generation =
      slot.generation.load(std::memory_order_relaxed) + 1;  // relaxed: mine
  // SYNC slot-open: the fields before the generation.
  slot.generation.store(generation, std::memory_order_release);
  return generation;
}

template <typename Slot>
void close_slot(Slot& slot) {
  const std::uint32_t generation =
      slot.generation.load(std::memory_order_relaxed);  // relaxed: mine
  if ((generation & 1U) != 0) {
    // SYNC slot-open: closed before it is given away.
    slot.generation.store(generation + 1, std::memory_order_release);
  }
  // SYNC slot-free: all that its owner did, before the next one.
  slot.pid.store(0, std::memory_order_release);
}

}  // namespace loom
