// Grows the device heap of all PEs by a chunk, and gives chunks back. Every PE allocates the chunk
// at the same offset, maps those of its node, and registers it with its rails. Each step ends with
// an exchange, so that all PEs succeed, or all fail with one message and keep what they had.
//
// Threads: those of a collective call, one at a time.
#pragma once

#include <cstdint>
#include <functional>
#include <span>
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
    // Makes the chunk a region of the rails, and ends that. Collective; `connect` throws the same
    // Error on all PEs. Empty where no rail of any PE reaches GPU memory.
    std::function<void(const heap::Chunk&)> connect;
    std::function<void(const heap::Chunk&)> disconnect;
    std::vector<RegionIndex> regions;  // numbers for chunks, if there is `connect`
  };

  static constexpr std::uint32_t kNotHere = UINT32_MAX;

  explicit HeapGrowth(Parts parts) : with_(std::move(parts)) {}

  // Adds a chunk with room for a block of `bytes`. Collective. Throws Error (OutOfMemory), the same
  // on all PEs.
  void grow(std::uint64_t bytes);

  // Makes memory of the program a chunk, which no block uses; `bytes` is a multiple of
  // heap::kChunkUnit, the same on all PEs, and the memory is such as gpu::Segments::adopt_part
  // takes. Collective. Returns the chunk. Throws Error, the same on all PEs; nothing has then
  // changed.
  // `check` is what this PE has against it: it may throw.
  heap::Chunk adopt(std::span<std::byte> memory, const std::function<void()>& check);
  // Ends that, and the heap no longer has the chunk. Collective; no operation or kernel of any PE
  // accesses it.
  void remove(const heap::Chunk& chunk);

  // Gives back the chunks that hold no block. Collective; no operation or kernel of any PE accesses
  // them.
  void give_back();

  // Ends the registrations of all chunks but the first. Before the heap is destroyed.
  void disconnect_all();

 private:
  // `take` allocates or adopts this PE's memory.
  using Take = std::function<gpu::DeviceSegmentOffer(const gpu::SegmentPart&)>;

  void add(const heap::Chunk& chunk);
  void connect_all(const heap::Chunk& chunk, const Take& take);
  void map_own_and_peers(const gpu::SegmentPart& part, const Take& take);
  [[nodiscard]] RegionIndex free_region() const;

  const Parts with_;
};

}  // namespace weft::runtime
