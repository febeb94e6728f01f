#include "src/heap/heap.hpp"

#include <unistd.h>

#include "src/base/error.hpp"
#include "src/base/units.hpp"

namespace weft::heap {

Heap::Heap(Pe me, std::uint32_t pe_count, std::uint64_t heap_bytes, std::uint64_t control_bytes)
    : control_bytes_(control_bytes),
      segment_(Segment::create(fmt::format("weft-heap-pe{}", me.value), heap_bytes + control_bytes)),
      base_(segment_.data()),
      allocator_(heap_bytes),
      mapped_(pe_count, nullptr) {
  mapped_[me.value] = base_;
}

SegmentOffer Heap::offer() const {
  return {.pid = ::getpid(), .descriptor = segment_.descriptor(), .bytes = segment_.size()};
}

void Heap::map_peers(const std::vector<SegmentOffer>& offers, const std::vector<bool>& is_local) {
  for (std::size_t pe = 0; pe < offers.size(); ++pe) {
    if (offers[pe].bytes != size()) {
      fail(Status::Mismatch,
           "PE {} has a heap of {}, this PE one of {}; WEFT_HEAP_SIZE must be the same on all PEs", pe,
           format_bytes(offers[pe].bytes), format_bytes(size()));
    }
    if (is_local[pe] && mapped_[pe] == nullptr) {
      peer_segments_.push_back(
          Segment::open(offers[pe].pid, offers[pe].descriptor, offers[pe].bytes));
      mapped_[pe] = peer_segments_.back().data();
    }
  }
}

void* Heap::allocate(std::uint64_t bytes, std::uint64_t alignment) {
  const auto offset = allocator_.allocate(bytes, alignment);
  return offset ? base_ + control_bytes_ + *offset : nullptr;
}

bool Heap::release(const void* address) {
  const std::uint64_t offset = offset_of(address);
  return offset >= control_bytes_ && offset < size() && allocator_.release(offset - control_bytes_);
}

}  // namespace weft::heap
