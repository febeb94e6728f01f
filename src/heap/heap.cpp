#include "src/heap/heap.hpp"

#include <algorithm>
#include <bit>
#include <random>

#include <unistd.h>

#include "src/base/error.hpp"
#include "src/base/units.hpp"

namespace weft::heap {

namespace {

constexpr std::string_view kWindow = "a window";

// A unique number for this process, different even from one with the same pid in another container.
std::uint64_t own_process() {
  static const std::uint64_t kNumber = [] {
    std::random_device random;
    return std::uint64_t{random()} << 32U | random();
  }();
  return kNumber ^ static_cast<std::uint64_t>(::getpid());  // a forked child is a different process
}

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
      pages_(pages),
      segment_(Segment::create(fmt::format("weft-heap-pe{}", me.value),
                               heap_bytes + control_bytes,
                               pages,
                               largest_alignment(heap_bytes))),
      base_(segment_.data()),
      allocator_(heap_bytes + control_bytes),
      alignment_max_(std::min(alignment_of(reinterpret_cast<std::uint64_t>(base_)),
                              largest_alignment(heap_bytes))),
      mapped_(pe_count, nullptr) {
  // The control bytes are the first block. It is never released, because no caller has its offset.
  const auto control = allocator_.allocate(control_bytes, 1);
  WEFT_CHECK(control == 0U, "control bytes at {}", control.value_or(UINT64_MAX));
  mapped_[me.value] = base_;
}

SegmentOffer Heap::offer() const {
  return offer_of(segment_);
}

SegmentOffer Heap::offer_of(const Segment& segment) {
  return {.pid = ::getpid(),
          .descriptor = segment.descriptor(),
          .bytes = segment.size(),
          .process = own_process(),
          .base = reinterpret_cast<std::uint64_t>(segment.data())};
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
      mapped_[pe] = map_offer(offers[pe]);
    }
  }
}

std::byte* Heap::map_offer(const SegmentOffer& offer) {
  if (offer.process == own_process()) {
    // One mapping for all threads, so that ThreadSanitizer sees that they share it.
    return reinterpret_cast<std::byte*>(offer.base);
  }
  peer_segments_.push_back(Segment::open(offer.pid, offer.descriptor, offer.bytes, pages_));
  return peer_segments_.back().data();
}

void Heap::add_region(std::string name,
                      Segment segment,
                      const std::vector<SegmentOffer>& offers,
                      const std::vector<bool>& is_local) {
  Region region{.name = std::move(name),
                .base = segment.data(),
                .bytes = segment.size(),
                .mapped = std::vector<std::byte*>(offers.size(), nullptr)};
  for (std::size_t pe = 0; pe < offers.size(); ++pe) {
    if (is_local[pe]) {
      region.mapped[pe] = map_offer(offers[pe]);
    }
  }
  segments_.push_back(std::move(segment));
  regions_.push_back(std::move(region));
}

RegionIndex Heap::add_window(std::byte* base, std::uint64_t bytes, Pe me) {
  Region window{.name = std::string(kWindow),
                .base = base,
                .bytes = bytes,
                .mapped = std::vector<std::byte*>(mapped_.size(), nullptr)};
  window.mapped[me.value] = base;
  const auto index = next_window();
  WEFT_CHECK(index.has_value(), "{} regions", regions_.size());
  if (index->value > regions_.size()) {
    regions_.emplace_back();
  }
  regions_[index->value - 1] = std::move(window);
  return *index;
}

std::optional<RegionIndex> Heap::next_window() const {
  const auto free = std::ranges::find_if(regions_, &Region::is_free);
  const auto index = static_cast<std::uint32_t>(free - regions_.begin()) + 1;
  return index < kRegionCountMax ? std::optional(RegionIndex(index)) : std::nullopt;
}

std::optional<RegionIndex> Heap::remove_window(const void* base) {
  for (std::uint32_t i = 0; i < regions_.size(); ++i) {
    if (regions_[i].name == kWindow && regions_[i].base == base && regions_[i].bytes > 0) {
      regions_[i] = {};
      return RegionIndex(i + 1);
    }
  }
  return std::nullopt;
}

std::optional<Place> Heap::place_of(const void* address) const {
  if (const std::uint64_t offset = offset_of(address); offset < size()) {
    return Place{RegionIndex(0), HeapOffset(offset), size() - offset};
  }
  for (std::uint32_t i = 0; i < regions_.size(); ++i) {
    const Region& region = regions_[i];
    const auto offset =
        static_cast<std::uint64_t>(static_cast<const std::byte*>(address) - region.base);
    if (offset < region.bytes) {
      return Place{RegionIndex(i + 1), HeapOffset(offset), region.bytes - offset};
    }
  }
  return std::nullopt;
}

std::byte* Heap::view_elsewhere(const void* address, Pe peer, std::size_t bytes) const {
  for (const Region& region : regions_) {
    const auto offset =
        static_cast<std::uint64_t>(static_cast<const std::byte*>(address) - region.base);
    if (offset < region.bytes && bytes <= region.bytes - offset) {
      std::byte* base = region.mapped[peer.value];
      return base == nullptr ? nullptr : base + offset;
    }
  }
  return nullptr;
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
