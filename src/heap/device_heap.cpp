#include "src/heap/device_heap.hpp"

#include <algorithm>
#include <iterator>

#include "src/base/error.hpp"

namespace weft::heap {
namespace {

// A chunk has at least this share of what is mapped, so that a heap of any size has few chunks.
constexpr std::uint64_t kGrowthShare = 8;

std::uint64_t round_up(std::uint64_t bytes) {
  return (bytes + kChunkUnit - 1) / kChunkUnit * kChunkUnit;
}

}  // namespace

DeviceHeap::DeviceHeap(std::unique_ptr<gpu::Segments> segments,
                       Pe me,
                       std::uint32_t pe_count,
                       std::uint64_t control_bytes)
    : segments_(std::move(segments)),
      control_bytes_(control_bytes),
      limit_(segments_->reserved()),
      mapped_(pe_count, nullptr) {
  add_chunk({.offset = 0, .bytes = first_bytes(), .region = {}});
  // The control bytes are the first block. It is never released, because no caller has its offset.
  const auto control = allocators_.at(0).allocate(control_bytes, 1);
  WEFT_CHECK(control == 0U, "control bytes at {}", control.value_or(UINT64_MAX));
  mapped_[me.value] = base();
}

void DeviceHeap::map_peer(Pe peer, std::uint32_t slot, const gpu::DeviceSegmentOffer& offer) {
  mapped_[peer.value] = segments_->map(slot, offer, fmt::format("PE {}", peer.value));
}

void DeviceHeap::limit_to(std::uint64_t bytes) {
  limit_ = std::max(std::min(limit_, bytes), first_bytes());
}

std::uint64_t DeviceHeap::user_bytes() const {
  std::uint64_t sum = 0;
  for (const Chunk& chunk : chunks_.all()) {
    sum += allocators_.contains(chunk.offset) ? chunk.bytes : 0;
  }
  return sum - control_bytes_;
}

std::byte* DeviceHeap::allocate(std::uint64_t bytes, std::uint64_t alignment) {
  for (auto& [offset, allocator] : allocators_) {
    if (const auto found = allocator.allocate(bytes, alignment)) {
      return base() + offset + *found;
    }
  }
  return nullptr;
}

bool DeviceHeap::release(const void* address) {
  const std::uint64_t offset = offset_of(address);
  if (offset < control_bytes_ || offset >= limit_) {
    return false;
  }
  auto& [start, allocator] = *std::prev(allocators_.upper_bound(offset));
  return allocator.release(offset - start);
}

std::optional<gpu::SegmentPart> DeviceHeap::plan_growth(std::uint64_t bytes, Growth growth) const {
  const std::vector<Chunk> chunks = chunks_.all();
  if (chunks.size() >= kChunkCountMax || bytes > limit_) {
    return std::nullopt;
  }
  const std::uint64_t exact = round_up(bytes);
  const std::uint64_t ample =
      std::max({exact, kGrowthBytesMin, round_up((user_bytes() + control_bytes_) / kGrowthShare)});
  if (growth == Growth::Ample) {
    if (const auto offset = place_between(chunks, ample, limit_)) {
      return gpu::SegmentPart{.offset = *offset, .bytes = ample};
    }
  }
  const auto offset = place_between(chunks, exact, limit_);
  return offset ? std::optional(gpu::SegmentPart{.offset = *offset, .bytes = exact}) : std::nullopt;
}

void DeviceHeap::add_chunk(const Chunk& chunk) {
  allocators_.emplace(chunk.offset, Allocator(chunk.bytes, chunk.offset));
  chunks_.add(chunk);
}

void DeviceHeap::adopt_chunk(const Chunk& chunk) {
  chunks_.add(chunk);
}

std::vector<Chunk> DeviceHeap::empty_chunks() const {
  std::vector<Chunk> empty = chunks_.all();
  std::erase_if(empty, [this](const Chunk& chunk) {
    const auto own = allocators_.find(chunk.offset);
    return chunk.offset == 0 || own == allocators_.end() || own->second.free_bytes() != chunk.bytes;
  });
  return empty;
}

void DeviceHeap::remove_chunk(const Chunk& chunk) {
  chunks_.remove(chunk.offset);
  allocators_.erase(chunk.offset);
}

std::uint64_t DeviceHeap::free_bytes() const {
  std::uint64_t sum = 0;
  for (const auto& [offset, allocator] : allocators_) {
    sum += allocator.free_bytes();
  }
  return sum;
}

std::uint64_t DeviceHeap::largest_free_block() const {
  std::uint64_t largest = 0;
  for (const auto& [offset, allocator] : allocators_) {
    largest = std::max(largest, allocator.largest_free_block());
  }
  return largest;
}

}  // namespace weft::heap
