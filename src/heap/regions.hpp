// The symmetric regions of one PE besides its heap: the program's globals, and the windows that
// users register. A region has the same number on every PE, from 1 on; the heap is region 0
// (heap.hpp).
//
// Threads: regions are added and removed by one thread while no other uses this object; in between
// any thread may read it.
#pragma once

#include <cstddef>
#include <cstdint>
#include <optional>
#include <string>
#include <vector>

#include "src/base/ids.hpp"
#include "src/heap/place.hpp"
#include "src/heap/segment.hpp"

namespace weft::heap {

// Symmetric memory: the same size on every PE, at addresses that may differ.
struct Region {
  std::string name;
  std::byte* base = nullptr;
  std::uint64_t bytes = 0;
  std::vector<std::byte*> mapped;  // by PE, the local mapping; null if there is none

  // Whether the number is free: the window was removed.
  [[nodiscard]] bool is_free() const { return name.empty(); }

  // Bytes from the base; at least `bytes` if `address` is outside.
  [[nodiscard]] std::uint64_t offset_of(const void* address) const {
    return static_cast<std::uint64_t>(static_cast<const std::byte*>(address) - base);
  }

  // The local mapping on `peer` of an address inside; null if there is none.
  [[nodiscard]] std::byte* view(const void* address, Pe peer) const {
    std::byte* start = mapped[peer.value];
    return start == nullptr ? nullptr : start + offset_of(address);
  }
};

class Regions {
 public:
  Regions(Pe me, std::uint32_t pe_count) : me_(me), pe_count_(pe_count) {}

  // Adds the contents of `segment`; `mapped` as in Region.
  void add(std::string name, Segment segment, std::vector<std::byte*> mapped);

  // The number for the next window: the lowest free number, the same on every PE. Empty if all
  // kRegionCountMax are in use.
  [[nodiscard]] std::optional<RegionIndex> next_window() const;
  // Adds a region of this PE's own memory, which no peer maps. Returns its number; one must be
  // free.
  RegionIndex add_window(std::byte* base, std::uint64_t bytes);
  // Removes the window, and frees its number. Empty if no window starts at `base`.
  std::optional<RegionIndex> remove_window(const void* base);

  // In the order of their numbers, beginning with region 1.
  [[nodiscard]] const std::vector<Region>& all() const { return regions_; }

  // A region that exists.
  [[nodiscard]] const Region& operator[](RegionIndex index) const {
    return regions_[index.value - 1];
  }

  // The region that contains the address; empty if none does.
  [[nodiscard]] std::optional<RegionIndex> region_of(const void* address) const;

  // Whether one of them contains [address, address + bytes); `place` is then where it lies on
  // `peer`.
  [[nodiscard]] bool find(const void* address, std::size_t bytes, Pe peer, Place& place) const;

  // Its local mapping; null if it is not mapped, or if no region contains it.
  [[nodiscard]] std::byte* view(const void* address, Pe peer, std::size_t bytes) const;

 private:
  // The region that contains [address, address + bytes); null if none does.
  [[nodiscard]] const Region* around(const void* address, std::size_t bytes) const;

  Pe me_;
  std::uint32_t pe_count_;
  std::vector<Region> regions_;    // region i is at i - 1
  std::vector<Segment> segments_;  // their memory
};

}  // namespace weft::heap
