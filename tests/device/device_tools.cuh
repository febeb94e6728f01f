// Memory of the cases (symmetric, or this GPU's own), and how a kernel says that something is not
// so.
#pragma once

#include <weft/device.cuh>
#include <weft/device.h>

#include <cstdint>
#include <vector>

#include "tests/device/device_suite.hpp"
#include "tests/device/random.hpp"

namespace suite {

namespace wd = weft::device;

enum class Where { Symmetric, Own };

inline constexpr int kPoison = 0xA5;

// `count` elements, zero at first.
template <typename T>
class Array {
 public:
  explicit Array(std::size_t count, Where where = Where::Symmetric) : count_(count), where_(where) {
    if (where == Where::Symmetric) {
      data_ = static_cast<T*>(weft_device_calloc(count, sizeof(T)));
      require(data_ != nullptr, "weft_device_calloc");
    } else {
      require_cuda(cudaMalloc(&data_, count * sizeof(T)), "cudaMalloc");
      require_cuda(cudaMemset(data_, 0, count * sizeof(T)), "cudaMemset");
      // Streams that do not wait for the default one may use it at once.
      require_cuda(cudaDeviceSynchronize(), "cudaMemset");
    }
  }

  Array(const Array&) = delete;
  Array& operator=(const Array&) = delete;

  ~Array() {
    if (where_ == Where::Symmetric) {
      weft_device_free(data_);
    } else {
      cudaFree(data_);
    }
  }

  [[nodiscard]] T* get() const { return data_; }

  [[nodiscard]] std::size_t count() const { return count_; }

  // The next two are for one PE at a time: a barrier of the hosts stands before peers touch it.
  void fill(int byte) {
    require_cuda(cudaMemset(data_, byte, count_ * sizeof(T)), "cudaMemset");
    require_cuda(cudaDeviceSynchronize(), "cudaMemset");
  }

  void write(const std::vector<T>& values) {
    require_cuda(
        cudaMemcpy(data_, values.data(), values.size() * sizeof(T), cudaMemcpyHostToDevice),
        "cudaMemcpy to the GPU");
    // cudaMemcpy from pageable memory may return before the last bytes are on the GPU: a peer's may
    // come first.
    require_cuda(cudaStreamSynchronize(nullptr), "cudaMemcpy to the GPU");
  }

  [[nodiscard]] std::vector<T> read() const {
    std::vector<T> values(count_);
    require_cuda(cudaMemcpy(values.data(), data_, count_ * sizeof(T), cudaMemcpyDeviceToHost),
                 "cudaMemcpy from the GPU");
    return values;
  }

 private:
  T* data_ = nullptr;
  std::size_t count_;
  Where where_;
};

// The first thing that a kernel found wrong, and how many there were.
struct Finding {
  unsigned int count;
  unsigned long long where;
  unsigned long long expected;
  unsigned long long seen;
};

inline __device__ void expect_equal(Finding* finding,
                                    unsigned long long where,
                                    unsigned long long expected,
                                    unsigned long long seen) {
  if (expected != seen && atomicAdd(&finding->count, 1U) == 0) {
    finding->where = where;
    finding->expected = expected;
    finding->seen = seen;
  }
}

class Findings {
 public:
  [[nodiscard]] Finding* get() const { return array_.get(); }

  // After the kernel: fails the case if there was any.
  void report(const char* what) const {
    if (const Finding found = array_.read().front(); found.count != 0) {
      fail("%s: %u wrong, the first at %llu: expected 0x%llx, got 0x%llx", what, found.count,
           found.where, found.expected, found.seen);
    }
  }

 private:
  Array<Finding> array_{1, Where::Own};
};

// The scopes of a grid in a row: this thread's, and how many there are.
template <typename Scope>
__device__ std::uint32_t group() {
  const std::uint32_t thread = blockIdx.x * blockDim.x + threadIdx.x;
  if constexpr (std::is_same_v<Scope, wd::Thread>) {
    return thread;
  } else if constexpr (std::is_same_v<Scope, wd::Warp>) {
    return thread / 32;
  } else {
    return blockIdx.x;
  }
}

template <typename Scope>
__host__ __device__ std::uint32_t groups(std::uint32_t blocks, std::uint32_t threads) {
  if constexpr (std::is_same_v<Scope, wd::Thread>) {
    return blocks * threads;
  } else if constexpr (std::is_same_v<Scope, wd::Warp>) {
    return blocks * threads / 32;
  } else {
    return blocks;
  }
}

// For pairs of PEs at each distance: to whom, and from whom.
inline int to_at(int distance) {
  return (me() + distance) % pe_count();
}

inline int from_at(int distance) {
  return (me() + pe_count() - distance) % pe_count();
}

}  // namespace suite
