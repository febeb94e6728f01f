// Applies one atomic to a word that other threads and processes may share. Node-local PEs and the
// progress engine that serves other nodes use the same instructions, so that all atomics on a word
// are atomic with respect to each other.
//
// Threads: any. Words are aligned to their size.
#pragma once

#include <bit>
#include <cstdint>
#include <type_traits>

#include "src/base/atomic.hpp"
#include "src/base/half.hpp"
#include "src/transport/operation.hpp"

namespace weft::transport {

// What a message may ask for. Every code is valid with every width.
[[nodiscard]] constexpr bool is_atomic_code(std::uint8_t code) noexcept {
  return code < kAtomicCodeCount;
}

[[nodiscard]] constexpr bool is_atomic_width(std::uint8_t element_bytes) noexcept {
  return element_bytes == 2 || element_bytes == 4 || element_bytes == 8;
}

// The bits of the sum of two doubles, floats or halves, rounded to nearest even.
template <typename Word>
[[nodiscard]] Word float_sum(Word a, Word b) noexcept {
  if constexpr (sizeof(Word) == 2) {
    // Rounding twice does no harm: a float has more than twice the digits of a half.
    return half_from_float(half_to_float(a) + half_to_float(b));
  } else {
    using Number = std::conditional_t<sizeof(Word) == sizeof(float), float, double>;
    return std::bit_cast<Word>(std::bit_cast<Number>(a) + std::bit_cast<Number>(b));
  }
}

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
    case AtomicCode::FloatAdd: {
      Word old = ref.load(kOrder);
      while (!ref.compare_exchange_strong(old, float_sum(old, operand), kOrder)) {
      }
      return old;
    }
  }
  return 0;
}

template <typename Word>
std::uint64_t apply_atomic_as(void* word, const AtomicUpdate& update) noexcept {
  return apply_atomic(*static_cast<Word*>(word), update.code, static_cast<Word>(update.operand),
                      static_cast<Word>(update.compare));
}

// The same for 2, 4 or 8 bytes at `word`. The bits of the old value beyond its width are 0.
inline std::uint64_t apply_atomic(void* word, const AtomicUpdate& update) noexcept {
  switch (update.element_bytes) {
    case 2:
      return apply_atomic_as<std::uint16_t>(word, update);
    case 4:
      return apply_atomic_as<std::uint32_t>(word, update);
    default:
      return apply_atomic_as<std::uint64_t>(word, update);
  }
}

}  // namespace weft::transport
