// The host's access to a ring's memory (see weft/device/ring.hpp): std::atomic_ref on plain words.
// Used by the proxy's side of all rings, and by tests whose "GPU" is a thread.
//
// Every access to a shared word is an atomic of its own, without stand-alone fences, so that
// ThreadSanitizer sees the whole order. On x86 none costs more than a plain load or store.
#pragma once

#include <weft/device/ring.hpp>

#include <cstddef>
#include <cstdint>

#include "src/base/atomic.hpp"
#include "src/base/clock.hpp"

namespace weft::proxy {

struct HostMemory {
  using Word = std::uint64_t;

  static Word load_far(const Word* word) {
    // SYNC ring-word: pairs with store_far; ring.hpp names each use.
    return AtomicRef(*const_cast<Word*>(word)).load(std::memory_order_acquire);
  }

  static void store_far(Word* word, Word value) {
    // SYNC ring-word: pairs with load_far.
    AtomicRef(*word).store(value, std::memory_order_release);
  }

  static void load_far_pair(const Word* pair, Word& first, Word& second) {
    second = load_far(pair + 1);
    first = load_far(pair);
  }

  static void store_far_after_load(Word* word, Word value) { store_far(word, value); }

  static Word load_near(const Word* word) { return load_far(word); }

  static void store_near(Word* word, Word value) { store_far(word, value); }

  static Word add_near(Word* word, Word count) {
    // relaxed: the number only assigns positions.
    return AtomicRef(*word).fetch_add(count, std::memory_order_relaxed);
  }

  static bool try_lock(Word* lock) {
    // SYNC ring-lock: pairs with unlock.
    return AtomicRef(*lock).exchange(1, std::memory_order_acquire) == 0;
  }

  static void unlock(Word* lock) {
    // SYNC ring-lock: pairs with try_lock.
    AtomicRef(*lock).store(0, std::memory_order_release);
  }

  static void store_slot(Word* to, const Word* words) {
    for (std::size_t i = 0; i < device::kSlotWords; ++i) {
      store_far(to + i, words[i]);
    }
  }

  static void load_slot(const Word* from, Word* words) {
    for (std::size_t i = 0; i < device::kSlotWords; ++i) {
      words[i] = load_far(from + i);
    }
  }

  // SYNC ring-word: nothing here, as what applies commands on a host updates words by atomics of
  // its own order.
  static void fence_release() {}

  static void pause() { cpu_pause(); }
};

}  // namespace weft::proxy
