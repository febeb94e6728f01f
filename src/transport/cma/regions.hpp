// The address and size of each region of one PE in that PE's address space. A region of zero bytes
// is absent: no lookup finds it. At most kRegionCountMax.
//
// Threads: any thread may look up, also while another sets; `set` and `clear` by one thread at a
// time.
#pragma once

#include <array>
#include <cstddef>
#include <cstdint>

#include "src/base/atomic.hpp"
#include "src/base/ids.hpp"
#include "src/transport/operation.hpp"

namespace weft::transport::cma {

// A region in the address space of its owner; the number is not a valid pointer elsewhere.
struct RegionSpan {
  std::uint64_t base = 0;
  std::uint64_t bytes = 0;
};

class RegionTable {
 public:
  // False if there is no such index.
  [[nodiscard]] bool set(RegionIndex index, const RegionSpan& span) {
    if (index.value >= kRegionCountMax) {
      return false;
    }
    // relaxed: the size publishes it.
    AtomicRef(spans_[index.value].base).store(span.base, std::memory_order_relaxed);
    // SYNC region-known: pairs with address_of; the base is stored first.
    AtomicRef(spans_[index.value].bytes).store(span.bytes, std::memory_order_release);
    return true;
  }

  // Lookups fail from now on; a thread that looked the region up earlier may still use it.
  void clear(RegionIndex index) {
    if (index.value < kRegionCountMax) {
      // SYNC region-known: pairs with address_of.
      AtomicRef(spans_[index.value].bytes).store(0, std::memory_order_release);
    }
  }

  // The owner's address of `bytes` at `where`; 0 if they are not inside the region.
  [[nodiscard]] std::uint64_t address_of(const heap::Place& where, std::uint64_t bytes) const {
    if (where.region.value >= kRegionCountMax) {
      return 0;
    }
    RegionSpan& span = spans_[where.region.value];
    // SYNC region-known: pairs with set.
    const std::uint64_t size = AtomicRef(span.bytes).load(std::memory_order_acquire);
    // relaxed: stored before the size.
    const std::uint64_t base = AtomicRef(span.base).load(std::memory_order_relaxed);
    const std::uint64_t offset = where.offset.value;
    return size > 0 && offset <= size && bytes <= size - offset ? base + offset : 0;
  }

 private:
  mutable std::array<RegionSpan, kRegionCountMax> spans_{};
};

}  // namespace weft::transport::cma
