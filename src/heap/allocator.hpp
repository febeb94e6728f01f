// Allocates offsets inside a region: best fit, ties to the lowest offset, adjacent free blocks
// merged. It accesses no memory, only computes offsets, so that the same calls give the same
// offsets on every PE.
//
// One thread at a time. Deterministic: the result depends only on the sequence of calls.
#pragma once

#include <cstdint>
#include <map>
#include <optional>
#include <utility>

namespace weft::heap {

class Allocator {
 public:
  // Offset 0 is at `origin` of what alignments count from.
  explicit Allocator(std::uint64_t size, std::uint64_t origin = 0);

  // The offset of `bytes` (at least 1) aligned to `alignment` (a power of two); empty if there is
  // no room.
  [[nodiscard]] std::optional<std::uint64_t> allocate(std::uint64_t bytes, std::uint64_t alignment);

  // Frees a block. False if `offset` is not the start of a block.
  [[nodiscard]] bool release(std::uint64_t offset);

  // The requested size of the block at `offset`; empty if it is not the start of a block.
  [[nodiscard]] std::optional<std::uint64_t> block_size(std::uint64_t offset) const;

  // The block (offset, requested size) that contains `offset`; empty if none does.
  [[nodiscard]] std::optional<std::pair<std::uint64_t, std::uint64_t>> block_around(
      std::uint64_t offset) const;

  [[nodiscard]] std::uint64_t free_bytes() const;
  [[nodiscard]] std::uint64_t largest_free_block() const;

 private:
  [[nodiscard]] std::uint64_t aligned(std::uint64_t offset, std::uint64_t alignment) const;

  std::uint64_t origin_;
  std::map<std::uint64_t, std::uint64_t> free_;       // offset -> bytes; never adjacent
  std::map<std::uint64_t, std::uint64_t> allocated_;  // offset -> bytes
};

}  // namespace weft::heap
