#include "src/heap/allocator.hpp"

#include <algorithm>

#include "src/base/error.hpp"

namespace weft::heap {

Allocator::Allocator(std::uint64_t size, std::uint64_t origin) : origin_(origin) {
  if (size > 0) {
    free_.emplace(0, size);
  }
}

std::uint64_t Allocator::aligned(std::uint64_t offset, std::uint64_t alignment) const {
  return ((origin_ + offset + alignment - 1) & ~(alignment - 1)) - origin_;
}

std::optional<std::uint64_t> Allocator::allocate(std::uint64_t bytes, std::uint64_t alignment) {
  WEFT_CHECK(bytes > 0 && alignment > 0 && (alignment & (alignment - 1)) == 0,
             "bytes {}, alignment {}", bytes, alignment);
  auto best = free_.end();
  for (auto block = free_.begin(); block != free_.end(); ++block) {
    const std::uint64_t start = aligned(block->first, alignment);
    const std::uint64_t end = block->first + block->second;
    const bool fits = start >= block->first && start <= end && bytes <= end - start;
    if (fits && (best == free_.end() || block->second < best->second)) {
      best = block;
    }
  }
  if (best == free_.end()) {
    return std::nullopt;
  }
  const auto [offset, size] = *best;
  const std::uint64_t start = aligned(offset, alignment);
  free_.erase(best);
  if (start > offset) {
    free_.emplace(offset, start - offset);
  }
  if (start + bytes < offset + size) {
    free_.emplace(start + bytes, offset + size - start - bytes);
  }
  allocated_.emplace(start, bytes);
  return start;
}

bool Allocator::release(std::uint64_t offset) {
  const auto found = allocated_.find(offset);
  if (found == allocated_.end()) {
    return false;
  }
  auto [block, inserted] = free_.emplace(found->first, found->second);
  allocated_.erase(found);
  if (const auto next = std::next(block);
      next != free_.end() && block->first + block->second == next->first) {
    block->second += next->second;
    free_.erase(next);
  }
  if (block != free_.begin()) {
    if (const auto previous = std::prev(block);
        previous->first + previous->second == block->first) {
      previous->second += block->second;
      free_.erase(block);
    }
  }
  return true;
}

std::optional<std::uint64_t> Allocator::block_size(std::uint64_t offset) const {
  const auto found = allocated_.find(offset);
  return found == allocated_.end() ? std::nullopt : std::optional(found->second);
}

std::optional<std::pair<std::uint64_t, std::uint64_t>> Allocator::block_around(
    std::uint64_t offset) const {
  const auto next = allocated_.upper_bound(offset);
  if (next == allocated_.begin()) {
    return std::nullopt;
  }
  const auto block = std::prev(next);
  return offset - block->first < block->second
             ? std::optional(std::pair(block->first, block->second))
             : std::nullopt;
}

std::uint64_t Allocator::free_bytes() const {
  std::uint64_t sum = 0;
  for (const auto& [offset, bytes] : free_) {
    sum += bytes;
  }
  return sum;
}

std::uint64_t Allocator::largest_free_block() const {
  std::uint64_t largest = 0;
  for (const auto& [offset, bytes] : free_) {
    largest = std::max(largest, bytes);
  }
  return largest;
}

}  // namespace weft::heap
