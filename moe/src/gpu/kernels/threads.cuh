// The threads of a block that do something together: groups, which send and sum rows; takers of
// polled rows; warps, which draw what they do.
//
// Device code. Barriers of a block by number: 0 of all; from 1 on groups; behind those of few,
// takers, and what they tell each other; 15 readers of headers (receive_headers.cuh).
#pragma once

#include <weft/device/access.cuh>

#include <cstdint>
#include <type_traits>

#ifndef WEFT_MOE_KERNELS
#error "compiled by in_node.cu and between_nodes.cu"
#endif

namespace weft::moe::gpu::WEFT_MOE_KERNELS {

inline constexpr std::uint32_t kThreads = 512;  // of a block
inline constexpr std::uint32_t kGroupsMax = 16;
inline constexpr int kGroupsOfFew = 4;  // at most, in kernels for few rows
inline constexpr std::uint32_t kWarp = 32;
inline constexpr unsigned kAllLanes = ~0U;

// BlockPerRow: groups of 128 threads, or of a whole block. WarpPerRow: each group is a warp, so
// that most of a multiprocessor's have loads on their way while one waits. Kernels of their own, as
// those for few rows must not spill: the first touch of a kernel's stack takes 1 us. Loops that a
// call with few rows goes through once or twice are not unrolled, as a kernel waits for each line
// of code that it fetches for the first time (moe/docs/MOE_MEASUREMENTS.md).
enum class Rows { BlockPerRow, WarpPerRow };

inline __device__ std::uint32_t lane() {
  return threadIdx.x % kWarp;
}

// This thread's number in its block, which is groups times threads of a group.
inline __device__ std::uint32_t thread_of_block() {
  return threadIdx.y * blockDim.x + threadIdx.x;
}

// Threads that handle a row together: 128; a whole block when there are few rows, a warp when there
// are many.
struct Group {
  static __device__ std::uint32_t thread() { return threadIdx.x; }

  // Known beforehand where rows are many, so that offsets from one place stand in the instructions.
  template <Rows kRows = Rows::BlockPerRow>
  static __device__ std::uint32_t size() {
    return kRows == Rows::WarpPerRow ? kWarp : blockDim.x;
  }

  static __device__ std::uint32_t number() { return threadIdx.y; }

  static __device__ std::uint32_t of_block() { return blockDim.y; }

  static __device__ std::uint32_t warp() { return threadIdx.x / kWarp; }

  static __device__ std::uint32_t warps() { return blockDim.x / kWarp; }

  template <Rows kRows>
  static __device__ void sync() {
    if constexpr (kRows == Rows::WarpPerRow) {
      __syncwarp();
    } else {
      asm volatile("bar.sync %0, %1;" ::"r"(1 + number()), "r"(size()) : "memory");
    }
  }

  // The group's barrier, and whether all of its threads say yes.
  template <Rows kRows>
  static __device__ bool all(bool yes) {
    if constexpr (kRows == Rows::WarpPerRow) {
      return __all_sync(kAllLanes, yes ? 1 : 0) != 0;
    } else {
      int all = 0;
      asm volatile(
          "{ .reg .pred mine, ours; setp.ne.s32 mine, %3, 0; barrier.red.and.pred ours, %1, %2, "
          "mine; selp.s32 %0, 1, 0, ours; }"
          : "=r"(all)
          : "r"(1 + number()), "r"(size()), "r"(yes ? 1 : 0)
          : "memory");
      return all != 0;
    }
  }

  // Among all groups of the grid; neighbours are in different blocks. Senders begin with the last
  // block, because the first ones send the headers.
  static __device__ std::uint32_t index() { return index_in(gridDim.x - 1 - blockIdx.x); }

  // Receivers begin with the first block that sends no header: with few rows they are not those who
  // send, and have read what they need before the rows come.
  static __device__ std::uint32_t index_of_receiver(std::uint32_t headers) {
    return index_in(block_of_receiver(headers));
  }

  // The same, and the last groups of the blocks come first, as the first ones send.
  static __device__ std::uint32_t index_of_taker(std::uint32_t headers) {
    return (of_block() - 1 - number()) * gridDim.x + block_of_receiver(headers);
  }

  static __device__ std::uint32_t block_of_receiver(std::uint32_t headers) {
    const std::uint32_t skipped = headers < gridDim.x ? headers : 0;
    return blockIdx.x >= skipped ? blockIdx.x - skipped : blockIdx.x + gridDim.x - skipped;
  }

  static __device__ std::uint32_t count() { return gridDim.x * of_block(); }

  // Of the block that ends a combine for all: it sends first, and has no token before others have
  // one.
  static __device__ bool is_of_last_block() { return blockIdx.x == gridDim.x - 1; }

 private:
  static __device__ std::uint32_t index_in(std::uint32_t block) {
    return number() * gridDim.x + block;
  }
};

// Threads that take a polled row together: 128, whatever groups there are for what is sent.
struct Taker {
  static constexpr std::uint32_t kSize = kThreads / kGroupsOfFew;

  static __device__ std::uint32_t thread() { return thread_of_block() % kSize; }

  static __device__ std::uint32_t size() { return kSize; }

  static __device__ std::uint32_t number() { return thread_of_block() / kSize; }

  static __device__ std::uint32_t warp() { return thread() / kWarp; }

  static __device__ void sync() {
    asm volatile("bar.sync %0, %1;" ::"r"(1 + kGroupsOfFew + number()), "n"(kSize) : "memory");
  }

  // Behind what the last kReaders of them have read, which the others need. Those wait for none of
  // the others, as these may yet send.
  template <std::uint32_t kReaders>
  static __device__ void go_on() {
    constexpr std::uint32_t kFirst = 1 + 2 * kGroupsOfFew;
    constexpr std::uint32_t kMet = (kReaders + 1) * kSize;
    constexpr std::uint32_t kOthers = kGroupsOfFew - kReaders;
    if (number() >= kOthers) {
#pragma unroll
      for (std::uint32_t other = 0; other < kOthers; ++other) {
        asm volatile("bar.arrive %0, %1;" ::"r"(kFirst + other), "n"(kMet) : "memory");
      }
    } else {
      asm volatile("bar.sync %0, %1;" ::"r"(kFirst + number()), "n"(kMet) : "memory");
    }
  }

  // As Group::index_of_receiver; the last ones of the blocks come first, as the first groups send.
  static __device__ std::uint32_t index(std::uint32_t headers) {
    return (kGroupsOfFew - 1 - number()) * gridDim.x + Group::block_of_receiver(headers);
  }

  static __device__ std::uint32_t count() { return gridDim.x * kGroupsOfFew; }
};

// A warp: the first of kAtOnce numbers that no other has drawn. Blocks take turns by kTogether
// numbers, of which their warps draw. Neighbours in one block are up to 3 % faster. `drawn` is in
// shared memory, 0 before.
template <std::uint32_t kAtOnce, std::uint32_t kTogether>
__device__ std::uint32_t draw(std::uint32_t& drawn) {
  static_assert(kTogether % kAtOnce == 0);
  std::uint32_t number = 0;
  if (lane() == 0) {
    number = atomicAdd(&drawn, kAtOnce);
  }
  number = __shfl_sync(kAllLanes, number, 0);
  return (number / kTogether * gridDim.x + blockIdx.x) * kTogether + number % kTogether;
}

}  // namespace weft::moe::gpu::WEFT_MOE_KERNELS
