// The symmetric memory of one PE on its GPU: allocator and mappings. Same layout as the heap: first the control
// bytes, which Weft's own device code uses, then the user's memory.
//
// Threads: allocate and release by one thread at a time (they are collective); the rest is constant once the
// peers are mapped.
#pragma once

#include <cstddef>
#include <cstdint>
#include <memory>
#include <optional>
#include <utility>
#include <vector>

#include "src/base/ids.hpp"
#include "src/gpu/segments.hpp"
#include "src/heap/allocator.hpp"

namespace weft::heap {

class DeviceHeap {
 public:
  // `segments` has room for the control bytes and the user's memory.
  DeviceHeap(std::unique_ptr<gpu::Segments> segments,
             Pe me,
             std::uint32_t pe_count,
             std::uint64_t control_bytes);

  // Maps a PE of this node; `slot` is its index in the address range.
  void map_peer(Pe peer, std::uint32_t slot, const gpu::SegmentOffer& offer);

  [[nodiscard]] gpu::Segments& segments() { return *segments_; }

  [[nodiscard]] std::byte* base() const { return segments_->base(); }

  [[nodiscard]] std::uint64_t size() const { return segments_->size(); }

  [[nodiscard]] std::uint64_t user_bytes() const { return size() - control_bytes_; }

  // At least size() if `address` is outside.
  [[nodiscard]] std::uint64_t offset_of(const void* address) const {
    return reinterpret_cast<std::uint64_t>(address) - reinterpret_cast<std::uint64_t>(base());
  }

  // True if [address, address + bytes) is memory that programs may use.
  [[nodiscard]] bool contains(const void* address, std::size_t bytes) const {
    const std::uint64_t offset = offset_of(address);
    return offset >= control_bytes_ && offset < size() && bytes <= size() - offset;
  }

  // Null if `peer` is not mapped.
  [[nodiscard]] std::byte* mapped_base(Pe peer) const { return mapped_[peer.value]; }

  [[nodiscard]] std::byte* allocate(std::uint64_t bytes, std::uint64_t alignment);
  [[nodiscard]] bool release(const void* address);

  [[nodiscard]] const Allocator& allocator() const { return allocator_; }

 private:
  std::unique_ptr<gpu::Segments> segments_;
  std::uint64_t control_bytes_;
  Allocator allocator_;
  std::vector<std::byte*> mapped_;  // by PE
};

}  // namespace weft::heap
