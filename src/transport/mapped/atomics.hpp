// Single words of mapped memory that peers poll: what signals, p and wait are made of, on the fast path
// (api/fast_path.hpp) as behind the seam (mapped_transport.hpp). Atomics that fetch are in transport/atomic_update.hpp,
// which serves all transports.
//
// Threads: any. Words are aligned to their size.
#pragma once

#include <cstdint>

#include "src/base/atomic.hpp"
#include "src/transport/atomic_update.hpp"

namespace weft::transport {

// A store that a waiting PE may see: what set does where nobody asks for the old value.
template <typename Word>
void store_word(Word* word, Word value) noexcept {
  // SYNC mapped-word: publishes what this PE wrote before.
  AtomicRef(*word).store(value, std::memory_order_release);
}

template <typename Word>
[[nodiscard]] Word load_word(const Word* word) noexcept {
  // SYNC mapped-word: sees what the writer of the value published.
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
