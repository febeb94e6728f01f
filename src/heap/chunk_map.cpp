#include "src/heap/chunk_map.hpp"

#include <algorithm>
#include <iterator>

#include "src/base/atomic.hpp"

namespace weft::heap {
namespace {

// The last chunk that starts at or before `offset`; the end if there is none.
std::span<const Chunk>::iterator last_from(std::span<const Chunk> chunks, std::uint64_t offset) {
  const auto after = std::ranges::upper_bound(chunks, offset, {}, &Chunk::offset);
  return after == chunks.begin() ? chunks.end() : std::prev(after);
}

}  // namespace

bool covers(std::span<const Chunk> chunks, std::uint64_t offset, std::uint64_t bytes) {
  auto chunk = last_from(chunks, offset);
  while (chunk != chunks.end() && chunk->offset <= offset) {
    const std::uint64_t left = chunk->bytes - std::min(offset - chunk->offset, chunk->bytes);
    if (bytes <= left) {
      return true;
    }
    bytes -= left;
    offset += left;
    if (left == 0) {
      return false;
    }
    ++chunk;
  }
  return false;
}

const Chunk* chunk_around(std::span<const Chunk> chunks,
                          std::uint64_t offset,
                          std::uint64_t bytes) {
  const auto chunk = last_from(chunks, offset);
  if (chunk == chunks.end()) {
    return nullptr;
  }
  const std::uint64_t skipped = offset - chunk->offset;
  return skipped <= chunk->bytes && bytes <= chunk->bytes - skipped ? &*chunk : nullptr;
}

std::optional<std::uint64_t> place_between(std::span<const Chunk> chunks,
                                           std::uint64_t bytes,
                                           std::uint64_t limit) {
  std::uint64_t start = 0;
  for (const Chunk& chunk : chunks) {
    if (chunk.offset - start >= bytes) {
      break;
    }
    start = chunk.offset + chunk.bytes;
  }
  return start <= limit && bytes <= limit - start ? std::optional(start) : std::nullopt;
}

void ChunkMap::add(const Chunk& chunk) {
  const std::lock_guard lock(mutex_);
  chunks_.insert(std::ranges::upper_bound(chunks_, chunk.offset, {}, &Chunk::offset), chunk);
  // SYNC heap-chunks: the chunk is entered before readers see a new version. They then take the
  // lock.
  AtomicRef(version_).fetch_add(1, std::memory_order_release);
}

void ChunkMap::remove(std::uint64_t offset) {
  const std::lock_guard lock(mutex_);
  std::erase_if(chunks_, [offset](const Chunk& chunk) { return chunk.offset == offset; });
  // SYNC heap-chunks: as in add.
  AtomicRef(version_).fetch_add(1, std::memory_order_release);
}

std::vector<Chunk> ChunkMap::all() const {
  const std::lock_guard lock(mutex_);
  return chunks_;
}

bool ChunkMap::covers(std::uint64_t offset, std::uint64_t bytes) const {
  const std::lock_guard lock(mutex_);
  return heap::covers(chunks_, offset, bytes);
}

std::uint64_t ChunkMap::version() const noexcept {
  // SYNC heap-chunks: see add.
  return AtomicRef(version_).load(std::memory_order_acquire);
}

std::span<const Chunk> ChunkReader::now() {
  if (map_ == nullptr) {
    return {};
  }
  if (const std::uint64_t version = map_->version(); version != version_) {
    chunks_ = map_->all();  // perhaps of a later version: then it is copied once more
    version_ = version;
  }
  return chunks_;
}

}  // namespace weft::heap
