// Grows the device heap of all PEs by a chunk, and gives chunks back. Every PE allocates the chunk at the same offset,
// maps those of its node, and registers it with its rails. Each step ends with an exchange, so that all PEs succeed, or
// all fail with one message and keep what they had.
//
// Threads: those of a collective call, one at a time.
#pragma once

#include <cstdint>
#include <functional>
#include <string_view>
#include <vector>

#include "src/base/ids.hpp"
#include "src/bootstrap/bootstrap.hpp"
#include "src/heap/device_heap.hpp"

namespace weft::runtime {

class HeapGrowth {
 public:
  struct Parts {
    heap::DeviceHeap& heap;
    bootstrap::Bootstrap& bootstrap;
    std::vector<std::uint32_t>
        slots;  // by PE: its slot in the address range here; kNotHere: it is not mapped
    // Makes the chunk a region of the rails, and ends that. Collective; `connect` throws the same Error on all PEs.
    // Empty where no rail of any PE reaches GPU memory.
    std::function<void(const heap::Chunk&)> connect;
    std::function<void(const heap::Chunk&)> disconnect;
    std::vector<RegionIndex> regions;  // numbers for chunks, if there is `connect`
  };

  static constexpr std::uint32_t kNotHere = UINT32_MAX;

  explicit HeapGrowth(Parts parts) : with_(std::move(parts)) {}

  // Adds a chunk with room for a block of `bytes`. Collective. Throws Error (OutOfMemory), the same on all PEs.
  void grow(std::uint64_t bytes);

  // Gives back the chunks that hold no block. Collective; no operation or kernel of any PE accesses them.
  void give_back();

  // Ends the registrations of all chunks but the first. Before the heap is destroyed.
  void disconnect_all();

 private:
  void add(const heap::Chunk& chunk);
  void map_own_and_peers(const gpu::SegmentPart& part);
  [[nodiscard]] RegionIndex free_region() const;

  const Parts with_;
};

}  // namespace weft::runtime
