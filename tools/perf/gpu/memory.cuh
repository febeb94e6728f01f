// What the files with kernels share: CUDA's errors as JobError, the GPU's clock around a loop,
// launches, and the data that is moved: an element says which PE made it, for which PE, and its
// place.
//
// Threads: the main one of each PE.
#pragma once

#include <weft/device.cuh>

#include <cuda_runtime.h>

#include <algorithm>
#include <cstddef>
#include <cstdint>

#include "tools/perf/gpu/collective_data.hpp"
#include "tools/perf/gpu/session.hpp"

namespace weft::perf::gpu {

inline constexpr std::uint32_t kThreadsMax = 1024;
// Of kernels that time single calls: with registers for all, as docs/GPU.md advises. A loop's state
// that lies in memory costs 0.15 us after each fence.
inline constexpr std::uint32_t kTimedThreadsMax = 512;
inline constexpr std::uint32_t kCtasMax = 1024;

// Throws "`action` failed: CUDA's words".
void check(cudaError_t error, const char* action);

// ---- Time: the GPU's own clock, so that the start of a kernel does not count.

struct Span {
  std::uint64_t begin, end;
};

struct Loop {
  int warmup, iterations;
};

// Called by all threads of a CTA: what they did before is inside the span, what follows is not.
inline __device__ void begin_span(Span* spans) {
  __syncthreads();
  if (threadIdx.x == 0) {
    spans[blockIdx.x].begin = device::now_ns();
  }
  __syncthreads();
}

inline __device__ void end_span(Span* spans) {
  __syncthreads();
  if (threadIdx.x == 0) {
    spans[blockIdx.x].end = device::now_ns();
  }
}

// kCtasMax of them, in GPU memory of the process.
[[nodiscard]] Span* spans_of_process();
// From the first CTA's begin to the last one's end, an iteration. Waits for the kernel.
[[nodiscard]] double microseconds(std::uint32_t ctas, std::uint64_t iterations);

// ---- Launches

struct Shape {
  std::uint32_t ctas = 1;
  std::uint32_t threads = 1;
};

// The threads, or what this kernel's registers allow. Also loads the kernel: CUDA loads at the
// first use, and may wait with that for kernels that wait for this PE.
[[nodiscard]] std::uint32_t threads_for(const void* kernel, std::uint32_t wanted);
// CTAs that run at once, at most as many as wanted.
[[nodiscard]] std::uint32_t ctas_for(const void* kernel, Shape wanted);
// A kernel whose CTAs wait for each other, or for those of other PEs.
void launch_together(const void* kernel, Shape shape, void** arguments);
// Throws if the last launch failed.
void check_launch();

// ---- Data

struct Expected {
  Pattern pattern;
  int me, pe_count;
  int from = 0;       // for One
  int reduction = 0;  // weft_reduction
};

// Below 251, so that sums of floats are exact and an element at a wrong power of two is noticed.
inline __host__ __device__ int value_of(int from, int to, std::size_t index) {
  return static_cast<int>(
      (static_cast<std::size_t>(from) * 131 + static_cast<std::size_t>(to) * 17 + index) % 251);
}

// Block j of `blocks` is for PE j. A product is of ones and twos, so that floats hold it.
template <typename T>
void fill(void* buffer, std::size_t blocks, std::size_t count, int me, bool is_product = false);
// Bytes that no benchmark moves.
void poison(void* buffer, std::size_t bytes);
// The number of wrong elements.
template <typename T>
[[nodiscard]] std::uint64_t count_wrong(const void* buffer,
                                        std::size_t blocks,
                                        std::size_t count,
                                        const Expected& expected);

template <typename T>
[[nodiscard]] T read_word(const T* word) {
  T value{};
  wait_for_gpu();
  check(cudaMemcpy(&value, word, sizeof value, cudaMemcpyDefault), "reading a word of the GPU");
  return value;
}

// Source filled, dest poisoned, all PEs ready.
void prepare_bytes(const Session& session, std::size_t bytes);

}  // namespace weft::perf::gpu
