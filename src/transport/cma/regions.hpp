// Where the regions of one PE lie in its address space, and how far they reach. A region
// without bytes is absent; nothing lies in it.
//
// Threads: any may look up; `set` by one thread at a time, also while others look up other regions.
#pragma once

#include <array>
#include <cstddef>
#include <cstdint>

#include "src/base/atomic.hpp"
#include "src/base/ids.hpp"
#include "src/transport/operation.hpp"

namespace weft::transport::cma {

// A region in the address space of the PE that owns it; the number is no pointer elsewhere.
struct RegionSpan {
  std::uint64_t base = 0;
  std::uint64_t bytes = 0;
};

class RegionTable {
 public:
  static constexpr std::size_t kRegionCountMax = 256;

  // False if there is no such index.
  [[nodiscard]] bool set(RegionIndex index, const RegionSpan& span) {
    if (index.value >= kRegionCountMax) {
      return false;
    }
    spans_[index.value].base = span.base;
    // SYNC region-known: pairs with address_of; the base comes before.
    AtomicRef(spans_[index.value].bytes).store(span.bytes, std::memory_order_release);
    return true;
  }

  // The owner's address of `bytes` at `where`; 0 if they do not lie in the region.
  [[nodiscard]] std::uint64_t address_of(const RemoteAddress& where, std::uint64_t bytes) const {
    if (where.region.value >= kRegionCountMax) {
      return 0;
    }
    const RegionSpan& span = spans_[where.region.value];
    // SYNC region-known: pairs with set.
    const std::uint64_t size =
        AtomicRef(const_cast<std::uint64_t&>(span.bytes)).load(std::memory_order_acquire);
    const std::uint64_t offset = where.offset.value;
    return offset <= size && bytes <= size - offset ? span.base + offset : 0;
  }

 private:
  std::array<RegionSpan, kRegionCountMax> spans_{};
};

}  // namespace weft::transport::cma
