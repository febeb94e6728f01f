// The memory that the host has registered on this PE, and where operations find that of others.
//
// Each PE numbers its chunks itself. A handle carries the number and the keys; the first operation
// that names it enters the keys with the rails. Buffers of this PE alone have no number.
//
// Threads: registering and releasing by one at a time; the rest by any, also meanwhile.
#pragma once

#include <cstddef>
#include <cstdint>
#include <cstdlib>
#include <memory>
#include <shared_mutex>
#include <span>
#include <vector>

#include "src/heap/place.hpp"
#include "src/plugins/nvshmem/abi.hpp"
#include "src/plugins/nvshmem/chunk_handle.hpp"
#include "src/plugins/nvshmem/gpu_memory.hpp"
#include "src/plugins/nvshmem/own_memory.hpp"
#include "src/transport/rails/rails_transport.hpp"

namespace weft::plugins::nvshmem {

class Chunks {
 public:
  Chunks(transport::rails::RailsTransport& rails, Pe me, std::uint32_t pe_count);

  // Offers `memory`, which the host names by addresses from `base` on, and writes its handle.
  // `gpu` unless it is the host's. Throws Error if a rail cannot register it, or 1,023 chunks are
  // registered.
  void offer(MemoryHandle& handle,
             std::span<std::byte> memory,
             std::byte* base,
             const GpuMemory* gpu = nullptr);
  // A buffer that only this PE names, as the local side of operations. Throws Error if a rail
  // cannot register memory of a GPU; memory of the host is registered when it is first used.
  void keep_local(MemoryHandle& handle, std::span<std::byte> memory, const GpuMemory* gpu);
  // A handle of this PE, or a copy of it. One that was released before changes nothing.
  void release(const MemoryHandle& handle);

  // Where `bytes` at `remote.address` of `pe` are. Throws Error (InvalidArgument) if the handle is
  // none or they are not in its chunk.
  [[nodiscard]] heap::Place place_of(Pe pe, const MemoryDescription& remote, std::uint64_t bytes);
  // The memory of this PE that the host names so. What is not registered is the host's.
  [[nodiscard]] OwnMemory own_memory(void* named) const;

 private:
  struct Chunk {
    std::span<std::byte> memory;  // empty: the number is free
    std::byte* base = nullptr;
    std::uint32_t generation = 0;
    std::shared_ptr<gpu::WordMemory> words;  // null: memory of the host

    // Its memory cannot be used as the host names it.
    [[nodiscard]] bool is_special() const { return base != memory.data() || words != nullptr; }
  };

  struct Free {
    void operator()(std::uint32_t* words) const { std::free(words); }
  };

  [[nodiscard]] RegionIndex take_number();
  void count(const Chunk& chunk);
  void uncount(const Chunk& chunk);
  void release_local(const ChunkHandle& released);
  void enter(Pe pe, const ChunkHandle& chunk, std::uint32_t& entered);

  transport::rails::RailsTransport& rails_;
  Pe me_;
  mutable std::shared_mutex mutex_;
  std::vector<Chunk> own_;     // by region; 0 is the plugin's own
  std::vector<Chunk> locals_;  // buffers in memory of a GPU
  mutable std::uint32_t special_count_ = 0;
  // By PE and region: the generation whose keys the rails have. Pages that no chunk needs are never
  // touched.
  std::unique_ptr<std::uint32_t, Free> entered_;
};

}  // namespace weft::plugins::nvshmem
