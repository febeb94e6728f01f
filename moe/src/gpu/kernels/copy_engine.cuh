// The copy engine of a multiprocessor: rows that a warp moves through shared memory, and words of
// peers that must not overtake what was stored so. sm_90 and later.
//
// Device code, by all threads of a warp or, for words, of a group.
#pragma once

#include "moe/src/gpu/kernels/threads.cuh"
#include "moe/src/gpu/layout.hpp"

#if defined(__CUDA_ARCH__) && __CUDA_ARCH__ < 900
#define WEFT_MOE_BULK(...) __trap()
#else
#define WEFT_MOE_BULK(...) asm volatile(__VA_ARGS__)
#endif

namespace weft::moe::gpu::WEFT_MOE_KERNELS {

// ---- Bulk copies
//
// Rows that the copy engine of a multiprocessor moves (PTX cp.async.bulk), through shared memory: a
// warp's first thread says from where and to where, so no registers wait, and a whole row is on its
// way at once.
//
// memory -> a slot, with a barrier that counts its bytes -> any number of places, in a group that
// is waited for
//
// The engine is a proxy of its own (PTX ISA, "async proxy"): what ordinary instructions wrote, or
// acquired, it sees behind fence.proxy.async; what it wrote, they see when its completion was
// waited for.
//
// GPUs before compute capability 9.0 have no such engine: the host launches nothing there that
// comes here (launch.cuh), and the code for them ends the kernel. Device code: a warp; "one thread"
// is always its first.

inline __device__ std::uint32_t shared_address(const void* memory) {
  return static_cast<std::uint32_t>(__cvta_generic_to_shared(memory));
}

// One thread, behind a barrier of the threads that wrote to global memory, or acquired what others
// did. A fence for all memory takes longer.
inline __device__ void fence_global_for_bulk() {
  WEFT_MOE_BULK("fence.proxy.async.global;" :: : "memory");
}

// Each thread: what it wrote to shared memory, before the engine reads it; what it read there,
// before the engine writes it.
inline __device__ void fence_shared_for_bulk() {
  WEFT_MOE_BULK("fence.proxy.async.shared::cta;" :: : "memory");
}

// One thread: what its bulk stores read may be written again.
inline __device__ void await_bulk_reads() {
  WEFT_MOE_BULK("cp.async.bulk.wait_group.read 0;" :: : "memory");
}

// One thread: its bulk stores are done, and it sees them.
inline __device__ void await_bulk_stores() {
  WEFT_MOE_BULK("cp.async.bulk.wait_group 0;" :: : "memory");
}

inline __device__ void commit_bulk() {
  WEFT_MOE_BULK("cp.async.bulk.commit_group;" :: : "memory");
}

// One thread: 16-byte multiples, from shared memory.
inline __device__ void store_bulk(std::byte* to, const std::byte* from, std::uint32_t bytes) {
  WEFT_MOE_BULK("cp.async.bulk.global.shared::cta.bulk_group [%0], [%1], %2;" ::"l"(to),
                "r"(shared_address(from)), "r"(bytes) : "memory");
}

// Of a block on GPUs of compute capability 9.0.
inline constexpr std::size_t kSharedBytesMax = 232448;

// Of a warp.
template <std::uint32_t kSlotCount, std::uint32_t kBytes>
struct BulkPipelineMemory {
  static_assert(kBytes % kBulkAlignment == 0);

  static constexpr std::uint32_t kSlots = kSlotCount;
  static constexpr std::uint32_t kSlotBytes = kBytes;

  alignas(kBulkAlignment) std::byte slots[kSlots][kBytes];
  std::uint64_t filled[kSlots];
  std::uint32_t phases;  // of the barriers that are waited for next, as bits
};

// A row in pieces that fit into slots, about equal. To be worked out once: divisions take as long
// as a row is on its way.
struct Pieces {
  std::uint32_t count = 0;
  std::uint32_t bytes = 0;  // of each but the last
  std::uint32_t row_bytes = 0;

  Pieces() = default;

  __device__ Pieces(std::uint32_t of_row, std::uint32_t slot_bytes)
      : count((of_row + slot_bytes - 1) / slot_bytes), row_bytes(of_row) {
    bytes = (of_row + count * kBulkAlignment - 1) / (count * kBulkAlignment) * kBulkAlignment;
    count = (of_row + bytes - 1) / bytes;  // of very long rows these are fewer
  }

  __device__ std::uint32_t bytes_of(std::uint32_t piece) const {
    return min(bytes, row_bytes - piece * bytes);
  }
};

// What comes with a piece, to another place in shared memory.
struct Beside {
  std::byte* to;
  const std::byte* from;
  std::uint32_t bytes;
};

template <typename Memory>
class BulkPipeline {
 public:
  static constexpr std::uint32_t kSlots = Memory::kSlots;

  __device__ explicit BulkPipeline(Memory& memory) : memory_(memory) {}

  // The warp.
  __device__ void begin() const {
    if (lane() == 0) {
#pragma unroll
      for (std::uint32_t i = 0; i < kSlots; ++i) {
        WEFT_MOE_BULK("mbarrier.init.shared::cta.b64 [%0], 1;" ::"r"(
            shared_address(&memory_.filled[i])) : "memory");
      }
      memory_.phases = 0;
      WEFT_MOE_BULK("fence.mbarrier_init.release.cluster;" :: : "memory");
      fence_shared_for_bulk();
    }
    __syncwarp();
  }

  [[nodiscard]] __device__ std::byte* slot(std::uint32_t index) const {
    return memory_.slots[index];
  }

  // One thread.
  __device__ void load(std::uint32_t index,
                       const std::byte* from,
                       std::uint32_t bytes,
                       const Beside& beside = {}) const {
    const std::uint32_t barrier = shared_address(&memory_.filled[index]);
    expect(barrier, bytes + beside.bytes);
    begin_load(memory_.slots[index], from, bytes, barrier);
    if (beside.bytes > 0) {
      begin_load(beside.to, beside.from, beside.bytes, barrier);
    }
  }

  // One thread, or all of a warp, of which one says taken().
  __device__ void await(std::uint32_t index) const {
    std::uint32_t is_done = 0;
    while (is_done == 0) {
      WEFT_MOE_BULK(
          "{ .reg .pred p; mbarrier.try_wait.parity.shared::cta.b64 p, [%1], %2; selp.u32 %0, 1, "
          "0, p; }" : "=r"(is_done) : "r"(shared_address(&memory_.filled[index])),
          "r"(memory_.phases >> index & 1U) : "memory");
    }
  }

  // One thread, when all have waited.
  __device__ void taken(std::uint32_t index) const { memory_.phases ^= 1U << index; }

  // One thread: parts of several rows, `pitch` bytes apart from slot 0 on, which is what is then
  // waited for. from(i) is a place.
  template <typename From>
  __device__ void load_together(std::uint32_t rows,
                                std::uint32_t pitch,
                                std::uint32_t bytes,
                                From&& from) const {
    await_bulk_reads();
    const std::uint32_t barrier = shared_address(&memory_.filled[0]);
    expect(barrier, rows * bytes);
    for (std::uint32_t i = 0; i < rows; ++i) {
      begin_load(memory_.slots[0] + std::size_t{i} * pitch, from(i), bytes, barrier);
    }
  }

  // One thread: the row's first pieces are on their way.
  __device__ void begin_row(const Pieces& pieces,
                            const std::byte* from,
                            const Beside& beside = {}) const {
    await_bulk_reads();
    for (std::uint32_t i = 0; i < min(pieces.count, kSlots); ++i) {
      load(i, from + i * pieces.bytes, pieces.bytes_of(i), i == 0 ? beside : Beside{});
    }
  }

  // One thread, behind begin_row: store(from, begin, bytes) of each piece when it is here, which
  // begins at byte `begin` of the row.
  template <typename Store>
  __device__ void store_row(const Pieces& pieces, const std::byte* from, Store&& store) const {
    for (std::uint32_t piece = 0; piece < pieces.count; ++piece) {
      const std::uint32_t index = piece % kSlots;
      await(index);
      taken(index);
      store(slot(index), piece * pieces.bytes, pieces.bytes_of(piece));
      commit_bulk();
      if (const std::uint32_t next = piece + kSlots; next < pieces.count) {
        await_bulk_reads();
        load(index, from + next * pieces.bytes, pieces.bytes_of(next));
      }
    }
  }

 private:
  static __device__ void expect(std::uint32_t barrier, std::uint32_t bytes) {
    WEFT_MOE_BULK("mbarrier.arrive.expect_tx.shared::cta.b64 _, [%0], %1;" ::"r"(barrier),
                  "r"(bytes) : "memory");
  }

  static __device__ void begin_load(std::byte* to,
                                    const std::byte* from,
                                    std::uint32_t bytes,
                                    std::uint32_t barrier) {
    WEFT_MOE_BULK(
        "cp.async.bulk.shared::cluster.global.mbarrier::complete_tx::bytes [%0], [%1], %2, [%3];" ::
            "r"(shared_address(to)),
        "l"(from), "r"(bytes), "r"(barrier) : "memory");
  }

  Memory& memory_;
};

// ---- Words of peers
//
// Words of peers, which say that a row or a partial sum is there: each stored behind a fence that
// follows what it tells of.
//
// Device code: all threads of a group, behind its barrier. Where a group is a warp, its first
// thread may have bulk stores on their way, and waits for them first.

// So many rows of a group share a fence: of a sender, the one before it stores their words; of a
// receiver, the one after it has seen them. With many rows a fence for each would take as long as
// the row; with few, none is held back.
template <Rows kRows>
inline constexpr std::uint32_t kRowsPerFence = kRows == Rows::WarpPerRow ? 4 : 1;

// Words of peers that a thread has yet to store.
template <Rows kRows>
class PendingWords {
 public:
  // Null: none for this row. Behind the group's barrier, and at once in all its threads.
  __device__ void add(std::uint64_t* word, std::uint64_t number) {
#pragma unroll
    for (std::uint32_t i = kRowsPerFence<kRows> - 1; i > 0; --i) {
      words_[i] = words_[i - 1];
    }
    words_[0] = word;
    if (++count_ == kRowsPerFence<kRows>) {
      store(number);
    }
  }

  __device__ void store(std::uint64_t number) {
    bool has_any = false;
#pragma unroll
    for (std::uint32_t i = 0; i < kRowsPerFence<kRows>; ++i) {
      has_any = has_any || words_[i] != nullptr;
    }
    if constexpr (kRows == Rows::WarpPerRow) {
      if (lane() == 0) {
        await_bulk_stores();
      }
      __syncwarp();
    }
    if (has_any) {
      // SYNC moe-word (pairs with moe/src/gpu/kernels/receive.cuh): the rows or partial sums, then
      // their words.
      device::fence_release();
    }
#pragma unroll
    for (std::uint32_t i = 0; i < kRowsPerFence<kRows>; ++i) {
      if (words_[i] != nullptr) {
        device::store_relaxed(words_[i], number);
      }
      words_[i] = nullptr;
    }
    count_ = 0;
  }

 private:
  std::uint64_t* words_[kRowsPerFence<kRows>] = {};
  std::uint32_t count_ = 0;
};

}  // namespace weft::moe::gpu::WEFT_MOE_KERNELS
