// Words of peers, which say that a row or an answer is there: each stored behind a fence that follows what it tells of.
//
// Device code: all threads of a group, behind its barrier. Where a group is a warp, its first thread may have bulk stores on
// their way, and waits for them first.
#pragma once

#include "src/gpu/moe/bulk.cuh"

namespace weft::gpu::moe::WEFT_MOE_KERNELS {

// So many rows of a group share a fence: of a sender, the one before it stores their words; of a receiver, the one after it has
// seen them. With many rows a fence for each would take as long as the row; with few, none is held back.
template <Rows kRows>
inline constexpr std::uint32_t kRowsPerFence = kRows == Rows::Many ? 4 : 1;

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
    if constexpr (kRows == Rows::Many) {
      if (lane() == 0) {
        await_bulk_stores();
      }
      __syncwarp();
    }
    if (has_any) {
      // SYNC moe-word (pairs with src/gpu/moe/receive_rows.cuh): the rows or answers, then their words.
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

}  // namespace weft::gpu::moe::WEFT_MOE_KERNELS
