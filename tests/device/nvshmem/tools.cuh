// What the programs of NVSHMEM share: symmetric memory by NVSHMEM's calls, and how a kernel says
// that something is not so.
#pragma once

#include <cstdint>
#include <cstring>
#include <vector>

#include <nvshmem.h>
#include <nvshmemx.h>

#include "tests/device/device_suite.hpp"

namespace suite {

// `count` elements of symmetric memory, zero at first.
template <typename T>
class Symmetric {
 public:
  explicit Symmetric(std::size_t count)
      : count_(count), data_(static_cast<T*>(nvshmem_calloc(count, sizeof(T)))) {
    require(data_ != nullptr, "nvshmem_calloc");
  }

  Symmetric(const Symmetric&) = delete;
  Symmetric& operator=(const Symmetric&) = delete;

  ~Symmetric() { nvshmem_free(data_); }

  [[nodiscard]] T* get() const { return data_; }

  // For one PE at a time: a barrier stands before peers touch it.
  void write(const std::vector<T>& values) {
    require_cuda(
        cudaMemcpy(data_, values.data(), values.size() * sizeof(T), cudaMemcpyHostToDevice),
        "cudaMemcpy to the GPU");
    require_cuda(cudaStreamSynchronize(nullptr), "cudaMemcpy to the GPU");
  }

  [[nodiscard]] std::vector<T> read() const {
    std::vector<T> values(count_);
    require_cuda(cudaMemcpy(values.data(), data_, count_ * sizeof(T), cudaMemcpyDeviceToHost),
                 "cudaMemcpy from the GPU");
    return values;
  }

 private:
  std::size_t count_;
  T* data_;
};

// Counts what a kernel finds wrong, and keeps the line of the first.
struct Wrong {
  unsigned int count;
  int line;
};

class Checks {
 public:
  Checks() {
    require_cuda(cudaMallocManaged(&wrong_, sizeof(Wrong)), "cudaMallocManaged");
    *wrong_ = {};
  }

  Checks(const Checks&) = delete;
  Checks& operator=(const Checks&) = delete;

  ~Checks() { cudaFree(wrong_); }

  [[nodiscard]] Wrong* get() const { return wrong_; }

  // After the kernel.
  void report(const char* what) const {
    if (wrong_->count != 0) {
      fail("%s: %u wrong, the first in line %d", what, wrong_->count, wrong_->line);
    }
  }

 private:
  Wrong* wrong_ = nullptr;
};

// Launches together, waits for all PEs, and reports.
template <typename... Parameters>
void run_kernel(const char* what,
                void (*kernel)(Parameters...),
                int threads,
                const Checks& checks,
                Parameters... arguments) {
  void* list[] = {&arguments...};
  require(nvshmemx_collective_launch(reinterpret_cast<const void*>(kernel), dim3(1),
                                     dim3(static_cast<unsigned>(threads)), list, 0,
                                     nullptr) == NVSHMEMX_SUCCESS,
          "nvshmemx_collective_launch");
  finish(what);
  checks.report(what);
}

}  // namespace suite

#define WELL(wrong, is_so)                                 \
  do {                                                     \
    if (!(is_so) && atomicAdd(&(wrong)->count, 1U) == 0) { \
      (wrong)->line = __LINE__;                            \
    }                                                      \
  } while (0)
