// The symmetric memory of one PE on its GPU: allocator and mappings. It begins with the control
// bytes, which Weft's own device code uses; then comes the user's memory. Addresses are reserved up
// to a limit, and chunks of memory are mapped there when the heap grows. A block lies in one chunk.
//
// Threads: allocation, growth and release by one thread at a time (they are collective). Any thread
// may call contains and read chunks(); the rest is constant once the peers are mapped.
// Invariant: the same calls give the same chunks and the same blocks on every PE.
#pragma once

#include <cstddef>
#include <cstdint>
#include <map>
#include <memory>
#include <optional>
#include <utility>
#include <vector>

#include "src/base/ids.hpp"
#include "src/gpu/segments.hpp"
#include "src/heap/allocator.hpp"
#include "src/heap/chunk_map.hpp"

namespace weft::heap {

// Chunks start and end at multiples of this. It is also the largest alignment of a block.
inline constexpr std::uint64_t kChunkUnit = std::uint64_t{2} << 20U;
// The least that the heap grows by, unless only less fits below its limit or onto a GPU.
inline constexpr std::uint64_t kGrowthBytesMin = std::uint64_t{256} << 20U;
// Chunks at a time, the first one included.
inline constexpr std::uint32_t kChunkCountMax = 64;

enum class Growth : std::uint8_t {
  Ample,  // more than was asked for, so that few chunks serve many calls
  Exact,
};

class DeviceHeap {
 public:
  // `segments` has room for the control bytes and the user's memory.
  DeviceHeap(std::unique_ptr<gpu::Segments> segments,
             Pe me,
             std::uint32_t pe_count,
             std::uint64_t control_bytes);

  // Maps a PE of this node; `slot` is its index in the address range.
  void map_peer(Pe peer, std::uint32_t slot, const gpu::DeviceSegmentOffer& offer);

  [[nodiscard]] gpu::Segments& segments() { return *segments_; }

  [[nodiscard]] std::byte* base() const { return segments_->base(); }

  // The chunk that the heap starts with. It stays.
  [[nodiscard]] std::uint64_t first_bytes() const { return segments_->size(); }

  // The heap never ends beyond this offset. The least that any PE has reserved, but not less than
  // the first chunk.
  void limit_to(std::uint64_t bytes);

  [[nodiscard]] std::uint64_t limit() const { return limit_; }

  [[nodiscard]] bool can_grow() const { return limit_ > first_bytes(); }

  // Of all chunks in which blocks lie, without the control bytes.
  [[nodiscard]] std::uint64_t user_bytes() const;

  // At least limit() if `address` is outside.
  [[nodiscard]] std::uint64_t offset_of(const void* address) const {
    return reinterpret_cast<std::uint64_t>(address) - reinterpret_cast<std::uint64_t>(base());
  }

  // True if [address, address + bytes) is memory that programs may use.
  [[nodiscard]] bool contains(const void* address, std::size_t bytes) const {
    const std::uint64_t offset = offset_of(address);
    return offset >= control_bytes_ && offset < limit_ && chunks_.covers(offset, bytes);
  }

  // Null if `peer` is not mapped.
  [[nodiscard]] std::byte* mapped_base(Pe peer) const { return mapped_[peer.value]; }

  // Null if no chunk has room. `alignment` is a power of two, of the block's offset.
  [[nodiscard]] std::byte* allocate(std::uint64_t bytes, std::uint64_t alignment);
  [[nodiscard]] bool release(const void* address);

  // ---- Growth. The caller maps the memory.

  // Where a chunk for a block of `bytes` would lie. Empty if there is no place for it.
  [[nodiscard]] std::optional<gpu::SegmentPart> plan_growth(std::uint64_t bytes,
                                                            Growth growth) const;
  // The chunk is mapped on all PEs: blocks may lie in it from here on.
  void add_chunk(const Chunk& chunk);
  // The same for memory of the program: no block lies in it.
  void adopt_chunk(const Chunk& chunk);
  // The chunks without a block, besides the first.
  [[nodiscard]] std::vector<Chunk> empty_chunks() const;
  void remove_chunk(const Chunk& chunk);

  [[nodiscard]] const ChunkMap& chunks() const { return chunks_; }

  [[nodiscard]] std::uint64_t free_bytes() const;
  [[nodiscard]] std::uint64_t largest_free_block() const;

 private:
  std::unique_ptr<gpu::Segments> segments_;
  std::uint64_t control_bytes_;
  std::uint64_t limit_;
  ChunkMap chunks_;
  std::map<std::uint64_t, Allocator>
      allocators_;                  // of the chunks that are not the program's, by their offset
  std::vector<std::byte*> mapped_;  // by PE
};

}  // namespace weft::heap
