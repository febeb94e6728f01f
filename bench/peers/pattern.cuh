// The data that benchmarks move, and whether it arrived: an element says which PE made it, for
// which PE, and its place. Values are below 251, so that sums of floats are exact for any number of
// PEs here and an element that lands at a wrong power of two is noticed.
#pragma once

#include <cuda_runtime.h>

#include <cstddef>
#include <cstdint>

#include "peers.cuh"

namespace peers {
enum class Pattern { Exchange, Gather, One, Sum, SumScatter };

struct Expected {
  Pattern pattern;
  int me, pes;
  int from = 0;  // for Pattern::One
};

__host__ __device__ constexpr int value_of(int from, int to, size_t index) {
  return static_cast<int>((static_cast<size_t>(from) * 131 + static_cast<size_t>(to) * 17 + index) %
                          251);
}

// `blocks` blocks of `count` elements, block j for PE j.
template <class T>
__global__ void fill_kernel(T* buffer, size_t blocks, size_t count, int me) {
  const size_t step = static_cast<size_t>(gridDim.x) * blockDim.x;
  for (size_t i = static_cast<size_t>(blockIdx.x) * blockDim.x + threadIdx.x; i < blocks * count;
       i += step) {
    buffer[i] = static_cast<T>(value_of(me, static_cast<int>(i / count), i % count));
  }
}

__device__ inline int expected_at(const Expected& expected, size_t block, size_t index) {
  const int other = static_cast<int>(block);
  int sum = 0;
  switch (expected.pattern) {
    case Pattern::Exchange:
      return value_of(other, expected.me, index);
    case Pattern::Gather:
      return value_of(other, 0, index);
    case Pattern::One:
      return value_of(expected.from, 0, index);
    case Pattern::Sum:
    case Pattern::SumScatter:
      for (int pe = 0; pe < expected.pes; ++pe) {
        sum += value_of(pe, expected.pattern == Pattern::Sum ? 0 : expected.me, index);
      }
      return sum;
  }
  return -1;
}

template <class T>
__global__ void check_kernel(
    const T* buffer, size_t blocks, size_t count, Expected expected, unsigned* errors) {
  const size_t step = static_cast<size_t>(gridDim.x) * blockDim.x;
  for (size_t i = static_cast<size_t>(blockIdx.x) * blockDim.x + threadIdx.x; i < blocks * count;
       i += step) {
    if (buffer[i] != static_cast<T>(expected_at(expected, i / count, i % count))) {
      atomicAdd(errors, 1U);
    }
  }
}

template <class T>
void fill(T* buffer, size_t blocks, size_t count, int me) {
  fill_kernel<<<256, 256>>>(buffer, blocks, count, me);
  check(cudaGetLastError(), "launch of fill_kernel");
  check(cudaDeviceSynchronize(), "fill_kernel");
}

// The number of wrong elements; `errors` is a word of GPU memory.
template <class T>
unsigned count_errors(
    const T* buffer, size_t blocks, size_t count, Expected expected, unsigned* errors) {
  unsigned result = 0;
  check(cudaMemset(errors, 0, sizeof *errors), "cudaMemset");
  check_kernel<<<256, 256>>>(buffer, blocks, count, expected, errors);
  check(cudaGetLastError(), "launch of check_kernel");
  check(cudaMemcpy(&result, errors, sizeof result, cudaMemcpyDeviceToHost), "check_kernel");
  return result;
}
}  // namespace peers
