// The symmetric heap as programs allocate from it: every PE makes the same calls with the same
// arguments, so that the allocators of all PEs make the same decisions and a block has the same
// offset everywhere.
//
// Threads: allocate and release by one thread per PE, collectively; block_of by any thread.
#pragma once

#include <cstdint>
#include <mutex>
#include <optional>
#include <string_view>

#include "src/heap/heap.hpp"
#include "src/rma/context.hpp"
#include "src/runtime/collective_calls.hpp"

namespace weft::runtime {

// A block of the heap: its start in the region and the requested size.
struct HeapBlock {
  std::uint64_t offset = 0;
  std::uint64_t bytes = 0;
};

class SymmetricHeap {
 public:
  // All arguments outlive it. `context` is the default context, which release completes.
  SymmetricHeap(heap::Heap& heap,
                collectives::Collectives& collectives,
                rma::Context& context,
                const CollectiveCalls& calls);

  // Collective. `zeroed` clears this PE's block before the final barrier. `name` is the function
  // that the user called. Throws Error (OutOfMemory, Mismatch naming the PEs with different
  // arguments, InvalidArgument); the heap is then unchanged on all PEs, and the program may
  // continue.
  [[nodiscard]] void* allocate(std::uint64_t bytes,
                               std::uint64_t alignment,
                               bool zeroed,
                               std::string_view name = "weft_malloc");
  // Collective. Throws Error (InvalidArgument if `address` is not a block, Mismatch).
  void release(void* address);
  // The block that contains `address`.
  [[nodiscard]] std::optional<HeapBlock> block_of(const void* address) const;

 private:
  [[nodiscard]] void* take_block(std::string_view name,
                                 std::uint64_t bytes,
                                 std::uint64_t alignment);

  heap::Heap& heap_;
  collectives::Collectives& collectives_;
  rma::Context& context_;
  const CollectiveCalls& calls_;
  mutable std::mutex
      mutex_;  // guards the allocator: block_of may run while another thread allocates
};

}  // namespace weft::runtime
