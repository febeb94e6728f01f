#include "src/runtime/symmetric_heap.hpp"

#include <algorithm>
#include <cstring>

#include "src/base/error.hpp"
#include "src/base/units.hpp"
#include "src/runtime/agreement.hpp"

namespace weft::runtime {

SymmetricHeap::SymmetricHeap(heap::Heap& heap,
                             collectives::Collectives& collectives,
                             rma::Context& context,
                             const CollectiveCalls& calls)
    : heap_(heap), collectives_(collectives), context_(context), calls_(calls) {}

void* SymmetricHeap::allocate(std::uint64_t bytes,
                              std::uint64_t alignment,
                              bool zeroed,
                              std::string_view name) {
  // Once they agree, every PE makes the same decisions: same arguments, same allocator.
  calls_.agree(name, {.kind = static_cast<std::uint64_t>(RequestKind::Allocate),
                      .bytes = bytes,
                      .alignment = alignment});
  if (alignment == 0 || (alignment & (alignment - 1)) != 0) {
    fail(Status::InvalidArgument, "{}: the alignment {} is not a power of two", name, alignment);
  }
  if (const std::uint64_t most = heap_.alignment_max(); alignment > most) {
    fail(Status::InvalidArgument,
         "{}: the alignment {} is more than {}, the largest that the heaps of all PEs have; {}",
         name, format_bytes(alignment), format_bytes(most),
         alignment > heap_.user_bytes()
             ? "raise WEFT_HEAP_SIZE"
             : "where a PE's addresses are limited (ulimit -v), raise the limit");
  }
  if (bytes == 0) {
    return nullptr;
  }
  void* address = take_block(name, bytes, alignment);
  if (zeroed) {
    std::memset(address, 0, bytes);
  }
  calls_.sync(name);
  return address;
}

void SymmetricHeap::release(void* address) {
  constexpr std::string_view kName = "weft_free";
  calls_.check(collectives_.barrier_all(context_), kName);
  calls_.agree(kName, {.kind = static_cast<std::uint64_t>(RequestKind::Release),
                       .offset = address == nullptr ? 0 : heap_.offset_of(address)});
  const std::unique_lock lock(mutex_);
  if (address != nullptr && !heap_.release(address)) {
    fail(
        Status::InvalidArgument,
        "weft_free: {} is not the start of a block of the symmetric heap (freed twice, or not from "
        "weft_malloc)",
        address);
  }
}

std::optional<HeapBlock> SymmetricHeap::block_of(const void* address) const {
  const std::unique_lock lock(mutex_);
  const std::uint64_t offset = heap_.offset_of(address);
  const auto block = heap_.allocator().block_around(offset);
  return block && block->first != 0 ? std::optional(HeapBlock{block->first, block->second})
                                    : std::nullopt;
}

void* SymmetricHeap::take_block(std::string_view name,
                                std::uint64_t bytes,
                                std::uint64_t alignment) {
  const std::unique_lock lock(mutex_);
  void* address = heap_.allocate(bytes, std::max<std::uint64_t>(alignment, kCacheLineBytes));
  if (address == nullptr) {
    const heap::Allocator& allocator = heap_.allocator();
    fail(Status::OutOfMemory,
         "{}: {} do not fit into the heap of {}: {} are free, the largest block has {}; raise "
         "WEFT_HEAP_SIZE",
         name, format_bytes(bytes), format_bytes(heap_.user_bytes()),
         format_bytes(allocator.free_bytes()), format_bytes(allocator.largest_free_block()));
  }
  return address;
}

}  // namespace weft::runtime
