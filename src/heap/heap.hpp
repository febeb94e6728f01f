// The symmetric heap of one PE: its own segment, the segments of the node's peers as mapped here,
// and the allocator. Region 0 of design; a window or the program's globals will be further regions.
//
// Layout of a segment: one control page (sync words that Weft itself uses), then the user's bytes.
// Both are symmetric, so that collectives may use the control page through rma.
//
// Threads: allocate and release by one thread at a time (they are collective); the rest is constant
// after construction and free for all.
#pragma once

#include <cstddef>
#include <cstdint>
#include <optional>
#include <vector>

#include "src/base/ids.hpp"
#include "src/bootstrap/bootstrap.hpp"
#include "src/heap/allocator.hpp"
#include "src/heap/segment.hpp"

namespace weft::heap {

// How a PE of the node offers its segment to the others.
struct SegmentOffer {
  std::int64_t pid = 0;
  std::int32_t descriptor = -1;
  std::uint64_t bytes = 0;
  // PEs that are threads of one process share the mapping itself; see own_process().
  std::uint64_t process = 0;
  std::uint64_t base = 0;
};

class Heap {
 public:
  // `control_bytes` come first and are never allocated. Throws Error if it does not fit.
  Heap(Pe me, std::uint32_t pe_count, std::uint64_t heap_bytes, std::uint64_t control_bytes);

  [[nodiscard]] SegmentOffer offer() const;

  // Maps the segments of the peers of my node. `offers` is indexed by PE; `is_local` says which.
  void map_peers(const std::vector<SegmentOffer>& offers, const std::vector<bool>& is_local);

  [[nodiscard]] std::uint32_t pe_count() const {
    return static_cast<std::uint32_t>(mapped_.size());
  }

  [[nodiscard]] std::byte* base() const { return base_; }

  [[nodiscard]] std::uint64_t size() const { return segment_.size(); }

  // Bytes from the base; at least size() if `address` is outside (also below: it wraps).
  [[nodiscard]] std::uint64_t offset_of(const void* address) const {
    return static_cast<std::uint64_t>(static_cast<const std::byte*>(address) - base_);
  }

  [[nodiscard]] bool contains(const void* address, std::size_t bytes) const {
    const std::uint64_t offset = offset_of(address);
    return offset < size() && bytes <= size() - offset;
  }

  // The heap of `peer` as mapped here; null if it is on another node. No check of `peer`.
  [[nodiscard]] std::byte* mapped_base(Pe peer) const { return mapped_[peer.value]; }

  [[nodiscard]] std::uint64_t control_bytes() const { return control_bytes_; }

  // Local half of a collective allocation; the runtime compares the arguments of all PEs.
  [[nodiscard]] void* allocate(std::uint64_t bytes, std::uint64_t alignment);
  [[nodiscard]] bool release(const void* address);

  [[nodiscard]] const Allocator& allocator() const { return allocator_; }

  // What programs may use: everything behind the control bytes.
  [[nodiscard]] std::byte* user() const { return base_ + control_bytes_; }

  [[nodiscard]] std::uint64_t user_bytes() const { return size() - control_bytes_; }

  // The first of the control bytes.
  [[nodiscard]] std::byte* control() const { return base_; }

 private:
  std::uint64_t control_bytes_;
  Segment segment_;
  std::byte* base_;
  Allocator allocator_;
  std::vector<Segment> peer_segments_;
  std::vector<std::byte*> mapped_;  // by PE
};

}  // namespace weft::heap
