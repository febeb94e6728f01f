// Where the memory of an operation lies on its peer: found once, when the address has been checked,
// and handed from there through rma to the transport, so that no layer looks it up again.
//
// A plain value. It holds until a region is added or removed.
#pragma once

#include <cstddef>
#include <cstdint>
#include <type_traits>

#include "src/base/ids.hpp"

namespace weft::heap {

struct Place {
  RegionIndex region;
  HeapOffset offset;            // the same (region, offset) on every PE
  std::byte* mapped = nullptr;  // the peer's memory as mapped here; null: a transport reaches it

  // The place that many bytes behind this one, in the same region.
  [[nodiscard]] Place after(std::uint64_t bytes) const {
    return {.region = region,
            .offset = HeapOffset(offset.value + bytes),
            .mapped = mapped == nullptr ? nullptr : mapped + bytes};
  }
};

// Each operation carries up to two, and each queue copies them.
static_assert(sizeof(Place) <= 24 && std::is_trivially_copyable_v<Place>);

}  // namespace weft::heap
