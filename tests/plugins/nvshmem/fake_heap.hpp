// The symmetric heap of a PE as the host library keeps it: a range of addresses, chunks of memory
// in it, and copies of all PEs' handles of each chunk. Bases differ between PEs.
//
// Threads: chunks are added and removed by the main thread; descriptions of chunks that are there
// may be asked for by any meanwhile.
#pragma once

#include <array>
#include <memory>
#include <unordered_map>

#include "tests/plugins/nvshmem/board.hpp"
#include "tests/plugins/nvshmem/loaded_transport.hpp"

namespace weft::plugins::nvshmem {

inline constexpr std::size_t kChunksMax = 32;

struct HeapOptions {
  std::size_t chunk_bytes = std::size_t{1} << 20U;  // a power of two, at least a page
  bool is_shared_memory = true;                     // else private to the process
};

class FakeHeap {
 public:
  // Collective: gathers the bases.
  FakeHeap(Board& board, int pe, const HeapOptions& options);
  ~FakeHeap();
  FakeHeap(const FakeHeap&) = delete;
  FakeHeap& operator=(const FakeHeap&) = delete;

  // What the host writes into the object.
  void fill_in(HostFields& fields);

  // Collective; each returns when all PEs have the handles of the new chunk.
  void add_chunk(const LoadedTransport& transport);
  // One whose memory is the user's: the chunk's own addresses have none.
  void add_user_chunk(const LoadedTransport& transport, void* memory);
  // The chunk at the same addresses again, with the memory it has.
  void add_again(const LoadedTransport& transport, std::size_t chunk);
  // Not collective.
  void release(const LoadedTransport& transport, std::size_t chunk);
  void release_all(const LoadedTransport& transport);

  // Not collective: memory beside the heap that is local to operations.
  void register_buffer(const LoadedTransport& transport, void* memory, std::size_t bytes);
  void release_buffer(const LoadedTransport& transport, void* memory);

  [[nodiscard]] std::size_t chunk_bytes() const { return options_.chunk_bytes; }

  [[nodiscard]] std::size_t chunk_count() const { return chunk_count_; }

  // An address of this PE's heap.
  [[nodiscard]] std::byte* at(std::uint64_t offset) const { return base_ + offset; }

  [[nodiscard]] MemoryDescription remote(int pe, std::uint64_t offset);
  // Throws std::runtime_error if the memory is not registered.
  [[nodiscard]] MemoryDescription local(const void* address);
  // From `address` on in one registered range.
  [[nodiscard]] std::size_t contiguous_bytes(const void* address);

  [[nodiscard]] std::size_t contiguous_bytes(std::uint64_t offset) const {
    return options_.chunk_bytes - offset % options_.chunk_bytes;
  }

  [[nodiscard]] MemoryHandle& handle(std::size_t chunk, int pe) {
    return handles_[chunk][static_cast<std::size_t>(pe)];
  }

 private:
  struct Buffer {
    std::byte* memory = nullptr;  // null: none
    std::size_t bytes = 0;
    MemoryHandle handle{};
  };

  [[nodiscard]] bool holds(const void* address) const;
  [[nodiscard]] Buffer* find_buffer(const void* address);

  Board& board_;
  int pe_;
  HeapOptions options_;
  std::byte* base_ = nullptr;
  std::array<std::uint64_t, kPesMax> bases_{};  // by PE
  std::atomic<std::size_t> chunk_count_ = 0;
  std::array<std::array<MemoryHandle, kPesMax>, kChunksMax> handles_{};
  std::array<bool, kChunksMax> is_registered_{};
  std::array<Buffer, 4> buffers_{};
  std::unordered_map<void*, void*> aliases_;  // the host's alias map
};

}  // namespace weft::plugins::nvshmem
