// Single words of mapped memory that peers poll: the building blocks of signals, p and wait, both
// on the fast path (api/fast_path.hpp) and in mapped_transport.hpp. Fetching atomics are in
// transport/atomic_update.hpp, which serves all transports.
//
// Threads: any. Words are aligned to their size.
#pragma once

#include <cstdint>

#include "src/base/atomic.hpp"
#include "src/transport/atomic_update.hpp"

namespace weft::transport {

// A store that a waiting PE may observe: implements a set without a fetched value.
template <typename Word>
void store_word(Word* word, Word value) noexcept {
  // SYNC mapped-word: publishes this PE's earlier writes.
  AtomicRef(*word).store(value, std::memory_order_release);
}

template <typename Word>
[[nodiscard]] Word load_word(const Word* word) noexcept {
  // SYNC mapped-word: observes what the writer of the value published.
  return AtomicRef(*const_cast<Word*>(word)).load(std::memory_order_acquire);
}

// The update of a signal word: Set, or Add.
inline void update_signal(std::uint64_t* word, AtomicCode code, std::uint64_t value) noexcept {
  if (code == AtomicCode::Set) {
    store_word(word, value);
  } else {
    apply_atomic(*word, code, value, std::uint64_t{0});
  }
}

}  // namespace weft::transport
