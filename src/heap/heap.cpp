#include "src/heap/heap.hpp"

#include <random>

#include <unistd.h>

#include "src/base/error.hpp"
#include "src/base/units.hpp"

namespace weft::heap {

namespace {

// A number of this process that no other has, also not one with the same pid in another container.
std::uint64_t own_process() {
  static const std::uint64_t kNumber = [] {
    std::random_device random;
    return std::uint64_t{random()} << 32U | random();
  }();
  return kNumber ^ static_cast<std::uint64_t>(::getpid());  // a forked child is another process
}

}  // namespace

Heap::Heap(Pe me, std::uint32_t pe_count, std::uint64_t heap_bytes, std::uint64_t control_bytes)
    : control_bytes_(control_bytes),
      segment_(
          Segment::create(fmt::format("weft-heap-pe{}", me.value), heap_bytes + control_bytes)),
      base_(segment_.data()),
      allocator_(heap_bytes + control_bytes),
      mapped_(pe_count, nullptr) {
  // The control bytes are the first block; nobody has their offset to release it.
  const auto control = allocator_.allocate(control_bytes, 1);
  WEFT_CHECK(control == 0U, "control bytes at {}", control.value_or(UINT64_MAX));
  mapped_[me.value] = base_;
}

SegmentOffer Heap::offer() const {
  return {.pid = ::getpid(),
          .descriptor = segment_.descriptor(),
          .bytes = segment_.size(),
          .process = own_process(),
          .base = reinterpret_cast<std::uint64_t>(base_)};
}

void Heap::map_peers(const std::vector<SegmentOffer>& offers, const std::vector<bool>& is_local) {
  for (std::size_t pe = 0; pe < offers.size(); ++pe) {
    if (offers[pe].bytes != size()) {
      fail(Status::Mismatch,
           "PE {} has a heap of {}, this PE one of {}; WEFT_HEAP_SIZE must be the same on all PEs",
           pe, format_bytes(offers[pe].bytes), format_bytes(size()));
    }
    if (is_local[pe] && offers[pe].process == own_process()) {
      // One mapping for all threads, so that ThreadSanitizer sees who shares what.
      mapped_[pe] = reinterpret_cast<std::byte*>(offers[pe].base);
    } else if (is_local[pe]) {
      peer_segments_.push_back(
          Segment::open(offers[pe].pid, offers[pe].descriptor, offers[pe].bytes));
      mapped_[pe] = peer_segments_.back().data();
    }
  }
}

void* Heap::allocate(std::uint64_t bytes, std::uint64_t alignment) {
  const auto offset = allocator_.allocate(bytes, alignment);
  return offset ? base_ + *offset : nullptr;
}

bool Heap::release(const void* address) {
  const std::uint64_t offset = offset_of(address);
  return offset >= control_bytes_ && offset < size() && allocator_.release(offset);
}

}  // namespace weft::heap
