#include "src/heap/device_heap.hpp"

#include "src/base/error.hpp"

namespace weft::heap {

DeviceHeap::DeviceHeap(std::unique_ptr<gpu::Segments> segments,
                       Pe me,
                       std::uint32_t pe_count,
                       std::uint64_t control_bytes)
    : segments_(std::move(segments)),
      control_bytes_(control_bytes),
      allocator_(segments_->size()),
      mapped_(pe_count, nullptr) {
  // The control bytes are the first block. It is never released, because no caller has its offset.
  const auto control = allocator_.allocate(control_bytes, 1);
  WEFT_CHECK(control == 0U, "control bytes at {}", control.value_or(UINT64_MAX));
  mapped_[me.value] = base();
}

void DeviceHeap::map_peer(Pe peer, std::uint32_t slot, const gpu::SegmentOffer& offer) {
  mapped_[peer.value] = segments_->map(slot, offer, fmt::format("PE {}", peer.value));
}

std::byte* DeviceHeap::allocate(std::uint64_t bytes, std::uint64_t alignment) {
  const auto offset = allocator_.allocate(bytes, alignment);
  return offset ? base() + *offset : nullptr;
}

bool DeviceHeap::release(const void* address) {
  const std::uint64_t offset = offset_of(address);
  return offset >= control_bytes_ && offset < size() && allocator_.release(offset);
}

}  // namespace weft::heap
