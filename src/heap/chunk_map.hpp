// The chunks of memory of which a device heap consists. The heap is a range of addresses that
// starts with one chunk; more are mapped into it when the heap grows, and taken out again. All PEs
// have the same chunks at the same offsets.
//
// Threads: ChunkMap: changed by one thread at a time, read by any. ChunkReader: one thread; it
// keeps a copy, so that a look-up takes no lock while nothing changes.
// Invariants: chunks are sorted by offset and do not overlap.
#pragma once

#include <cstdint>
#include <mutex>
#include <optional>
#include <span>
#include <vector>

#include "src/base/ids.hpp"

namespace weft::heap {

struct Chunk {
  std::uint64_t offset = 0;  // from the start of the heap
  std::uint64_t bytes = 0;
  RegionIndex region;  // its number on the rails; unused where they do not reach GPU memory

  friend bool operator==(const Chunk&, const Chunk&) = default;
};

// True if every byte of the range lies in a chunk. The range may extend over adjacent chunks.
[[nodiscard]] bool covers(std::span<const Chunk> chunks, std::uint64_t offset, std::uint64_t bytes);

// The chunk in which all of the range lies; null if there is none.
[[nodiscard]] const Chunk* chunk_around(std::span<const Chunk> chunks,
                                        std::uint64_t offset,
                                        std::uint64_t bytes);

// The lowest offset at which `bytes` lie between the chunks and below `limit`.
[[nodiscard]] std::optional<std::uint64_t> place_between(std::span<const Chunk> chunks,
                                                         std::uint64_t bytes,
                                                         std::uint64_t limit);

class ChunkMap {
 public:
  void add(const Chunk& chunk);
  // No effect if no chunk starts at `offset`.
  void remove(std::uint64_t offset);

  [[nodiscard]] std::vector<Chunk> all() const;
  [[nodiscard]] bool covers(std::uint64_t offset, std::uint64_t bytes) const;

  // Changes with each add and remove.
  [[nodiscard]] std::uint64_t version() const noexcept;

 private:
  mutable std::mutex mutex_;
  std::vector<Chunk> chunks_;
  mutable std::uint64_t version_ = 0;
};

// What one thread knows of a ChunkMap: at least what was added before it was told of an address.
class ChunkReader {
 public:
  // `map` outlives this; null: there are no chunks.
  explicit ChunkReader(const ChunkMap* map) : map_(map) {}

  // The chunks, until the next call.
  [[nodiscard]] std::span<const Chunk> now();

 private:
  const ChunkMap* map_;
  std::uint64_t version_ = 0;
  std::vector<Chunk> chunks_;
};

}  // namespace weft::heap
