#include "src/heap/heap.hpp"

#include <algorithm>
#include <bit>

#include "src/base/error.hpp"
#include "src/base/units.hpp"

namespace weft::heap {

namespace {

// Some offset in a heap of this size is a multiple of every power of two up to the result.
std::uint64_t largest_alignment(std::uint64_t heap_bytes) {
  return std::max<std::uint64_t>(std::bit_floor(heap_bytes), Segment::kAlignment);
}

std::uint64_t alignment_of(std::uint64_t address) {
  return std::uint64_t{1} << std::countr_zero(address);
}

}  // namespace

Heap::Heap(Pe me,
           std::uint32_t pe_count,
           std::uint64_t heap_bytes,
           std::uint64_t control_bytes,
           Pages pages)
    : control_bytes_(control_bytes),
      segment_(Segment::create(fmt::format("weft-heap-pe{}", me.value),
                               heap_bytes + control_bytes,
                               pages,
                               largest_alignment(heap_bytes))),
      base_(segment_.data()),
      allocator_(heap_bytes + control_bytes),
      alignment_max_(std::min(alignment_of(reinterpret_cast<std::uint64_t>(base_)),
                              largest_alignment(heap_bytes))),
      peer_segments_(pages),
      mapped_(pe_count, nullptr),
      regions_(me, pe_count) {
  // The control bytes are the first block. It is never released, because no caller has its offset.
  const auto control = allocator_.allocate(control_bytes, 1);
  WEFT_CHECK(control == 0U, "control bytes at {}", control.value_or(UINT64_MAX));
  mapped_[me.value] = base_;
}

void Heap::map_peers(const std::vector<SegmentOffer>& offers, const std::vector<bool>& is_local) {
  for (std::size_t pe = 0; pe < offers.size(); ++pe) {
    if (offers[pe].bytes != size()) {
      fail(Status::Mismatch,
           "PE {} has a heap of {}, this PE one of {}; WEFT_HEAP_SIZE must be the same on all PEs",
           pe, format_bytes(offers[pe].bytes), format_bytes(size()));
    }
    alignment_max_ = std::min(alignment_max_, alignment_of(offers[pe].base));
    if (is_local[pe]) {
      mapped_[pe] = peer_segments_.map(offers[pe]);
    }
  }
}

void Heap::add_region(std::string name,
                      Segment segment,
                      const std::vector<SegmentOffer>& offers,
                      const std::vector<bool>& is_local) {
  std::vector<std::byte*> mapped(offers.size(), nullptr);
  for (std::size_t pe = 0; pe < offers.size(); ++pe) {
    if (is_local[pe]) {
      mapped[pe] = peer_segments_.map(offers[pe]);
    }
  }
  regions_.add(std::move(name), std::move(segment), std::move(mapped));
}

std::optional<RegionIndex> Heap::region_of(const void* address) const {
  return offset_of(address) < size() ? RegionIndex(0) : regions_.region_of(address);
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
