// Copies between mapped memories; the size selects the method. The CPU's part of every node-local
// put and get.
//
// Threads: any. When copy_bytes returns, the bytes are ordered like ordinary loads and stores: a
// later release publishes them (non-temporal stores are fenced inside), and nothing else orders
// them, see fetch_bytes.
#pragma once

#include <cstddef>
#include <cstdint>
#include <cstring>

#include "src/base/atomic.hpp"

namespace weft::transport {

// For more than 64 bytes: memcpy, or non-temporal stores where measurements showed them to be
// faster.
void copy_large(void* dest, const void* source, std::size_t bytes) noexcept;

namespace internal {

// One element that a peer may be polling: stored without tearing if it is aligned.
template <typename Word>
inline void copy_word(void* dest, const void* source) noexcept {
  Word value;
  std::memcpy(&value, source, sizeof value);
  if (reinterpret_cast<std::uintptr_t>(dest) % sizeof(Word) == 0) {
    // relaxed: put promises no order; fence, quiet and signals do.
    AtomicRef(*static_cast<Word*>(dest)).store(value, std::memory_order_relaxed);
  } else {
    std::memcpy(dest, &value, sizeof value);
  }
}

}  // namespace internal

inline void copy_bytes(void* dest, const void* source, std::size_t bytes) noexcept {
  switch (bytes) {
    case 0:
      return;
    case 4:
      return internal::copy_word<std::uint32_t>(dest, source);
    case 8:
      return internal::copy_word<std::uint64_t>(dest, source);
    case 16:
      std::memcpy(dest, source, 16);
      return;
    default:
      copy_large(dest, source, bytes);
  }
}

// The copy of a blocking get: whoever hears of its end, also by a relaxed store of p, may overwrite
// the source. A CPU that lets stores overtake loads, as ARM may, could otherwise show the p before
// it has read the source. On x86 it is no instruction.
inline void fetch_bytes(void* dest, const void* source, std::size_t bytes) noexcept {
  copy_bytes(dest, source, bytes);
  ordering_fence();
}

}  // namespace weft::transport
