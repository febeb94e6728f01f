// The symmetric memory of one PE: the heap (region 0) with its allocator, its local mappings of the
// heaps of the node's peers, and the other regions (regions.hpp).
//
// Layout of a segment: control bytes (sync words that Weft itself uses), then the user's bytes.
// Both are symmetric, so that collectives may use the control bytes through rma.
//
// Threads: allocate and release by one thread at a time (they are collective); the rest is constant
// after construction, and any thread may read it. For regions see regions.hpp.
#pragma once

#include <cstddef>
#include <cstdint>
#include <optional>
#include <string>
#include <vector>

#include "src/base/ids.hpp"
#include "src/heap/allocator.hpp"
#include "src/heap/place.hpp"
#include "src/heap/regions.hpp"
#include "src/heap/segment.hpp"
#include "src/heap/segment_offer.hpp"

namespace weft::heap {

class Heap {
 public:
  // `control_bytes` come first and are never allocated to users. Throws Error if it does not fit.
  Heap(Pe me,
       std::uint32_t pe_count,
       std::uint64_t heap_bytes,
       std::uint64_t control_bytes,
       Pages pages = Pages::Small);

  [[nodiscard]] SegmentOffer offer() const { return offer_of(segment_); }

  // Maps the segments of this node's peers. `offers` is indexed by PE; `is_local` tells which PEs
  // to map.
  void map_peers(const std::vector<SegmentOffer>& offers, const std::vector<bool>& is_local);

  [[nodiscard]] std::uint32_t pe_count() const {
    return static_cast<std::uint32_t>(mapped_.size());
  }

  [[nodiscard]] std::byte* base() const { return base_; }

  [[nodiscard]] std::uint64_t size() const { return segment_.size(); }

  // Bytes from the base; at least size() if `address` is outside (also if it is below: the
  // subtraction wraps around).
  [[nodiscard]] std::uint64_t offset_of(const void* address) const {
    return static_cast<std::uint64_t>(static_cast<const std::byte*>(address) - base_);
  }

  [[nodiscard]] bool contains(const void* address, std::size_t bytes) const {
    const std::uint64_t offset = offset_of(address);
    return offset < size() && bytes <= size() - offset;
  }

  // The local mapping of the heap of `peer`; null if it is on another node. Does not check `peer`.
  [[nodiscard]] std::byte* mapped_base(Pe peer) const { return mapped_[peer.value]; }

  [[nodiscard]] std::uint64_t control_bytes() const { return control_bytes_; }

  // The largest alignment that a block can have on all PEs: the largest power of two in the size of
  // user memory (at least 2 MiB), unless a PE's address space has no range with that alignment.
  [[nodiscard]] std::uint64_t alignment_max() const { return alignment_max_; }

  // The local half of a collective allocation; the runtime compares the arguments of all PEs. An
  // address has the alignment of its offset, up to alignment_max().
  [[nodiscard]] void* allocate(std::uint64_t bytes, std::uint64_t alignment);
  [[nodiscard]] bool release(const void* address);

  [[nodiscard]] const Allocator& allocator() const { return allocator_; }

  // The memory that programs may use: everything after the control bytes.
  [[nodiscard]] std::byte* user() const { return base_ + control_bytes_; }

  [[nodiscard]] std::uint64_t user_bytes() const { return size() - control_bytes_; }

  // ---- Other regions: added in the same order on every PE.

  // Adds the contents of `segment` as a region; `offers` and `is_local` as for map_peers.
  void add_region(std::string name,
                  Segment segment,
                  const std::vector<SegmentOffer>& offers,
                  const std::vector<bool>& is_local);

  [[nodiscard]] Regions& regions() { return regions_; }

  [[nodiscard]] const Regions& regions() const { return regions_; }

  // Empty if the address is not symmetric.
  [[nodiscard]] std::optional<RegionIndex> region_of(const void* address) const;

  // Whether one region contains [address, address + bytes); `place` is then where it lies on
  // `peer`, which is not checked. Not an optional: its copies, just written field by field, would
  // stall.
  [[nodiscard]] bool find(const void* address, std::size_t bytes, Pe peer, Place& place) const {
    if (const std::uint64_t offset = offset_of(address); offset < size()) [[likely]] {
      place = place_at(offset, peer);
      return bytes <= size() - offset;
    }
    return regions_.find(address, bytes, peer, place);
  }

  // Where an address that is symmetric lies on `peer`; neither is checked.
  [[nodiscard]] Place place_of(const void* address, Pe peer) const {
    if (const std::uint64_t offset = offset_of(address); offset < size()) [[likely]] {
      return place_at(offset, peer);
    }
    Place place;
    return regions_.find(address, 1, peer, place) ? place : Place{};
  }

  // The first of the control bytes.
  [[nodiscard]] std::byte* control() const { return base_; }

 private:
  [[nodiscard]] Place place_at(std::uint64_t offset, Pe peer) const {
    std::byte* base = mapped_base(peer);
    return {.region = RegionIndex(0),
            .offset = HeapOffset(offset),
            .mapped = base == nullptr ? nullptr : base + offset};
  }

  std::uint64_t control_bytes_;
  Segment segment_;
  std::byte* base_;
  Allocator allocator_;
  std::uint64_t alignment_max_;
  PeerSegments peer_segments_;
  std::vector<std::byte*> mapped_;  // by PE
  Regions regions_;
};

}  // namespace weft::heap
