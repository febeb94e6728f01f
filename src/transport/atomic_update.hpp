// Applies one atomic to a word that other threads and processes may share. Node-local PEs and the
// progress engine that serves other nodes use the same instructions, so that all atomics on a word
// are atomic with respect to each other.
#pragma once

#include <cstdint>

#include "src/base/atomic.hpp"
#include "src/transport/operation.hpp"

namespace weft::transport {

// Returns the old value. All are sequentially consistent, because OpenSHMEM programs build locks on
// them. On x86 that costs nothing beyond the locked instruction.
template <typename Word>
Word apply_atomic(Word& word, AtomicCode code, Word operand, Word compare) noexcept {
  const AtomicRef<Word> ref(word);
  // SYNC atomic-update: an atomic is both acquire and release; pairs with itself and with waits on
  // the word.
  constexpr auto kOrder = std::memory_order_seq_cst;
  switch (code) {
    case AtomicCode::Set:
      return ref.exchange(operand, kOrder);
    case AtomicCode::Add:
      return ref.fetch_add(operand, kOrder);
    case AtomicCode::And:
      return ref.fetch_and(operand, kOrder);
    case AtomicCode::Or:
      return ref.fetch_or(operand, kOrder);
    case AtomicCode::Xor:
      return ref.fetch_xor(operand, kOrder);
    case AtomicCode::CompareSwap: {
      Word expected = compare;
      ref.compare_exchange_strong(expected, operand, kOrder);
      return expected;
    }
    case AtomicCode::Fetch:
      return ref.load(kOrder);
  }
  return 0;
}

// The same for 4 or 8 bytes at `word`, which is aligned to its size.
inline std::uint64_t apply_atomic(void* word, const AtomicUpdate& update) noexcept {
  if (update.element_bytes == sizeof(std::uint32_t)) {
    return apply_atomic(*static_cast<std::uint32_t*>(word), update.code,
                        static_cast<std::uint32_t>(update.operand),
                        static_cast<std::uint32_t>(update.compare));
  }
  return apply_atomic(*static_cast<std::uint64_t*>(word), update.code, update.operand,
                      update.compare);
}

}  // namespace weft::transport
