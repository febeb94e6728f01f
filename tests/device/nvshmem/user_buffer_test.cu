// Buffers that the program has allocated: registered as local sides, and as symmetric memory.
#include <cstdint>
#include <vector>

#include <nvshmem.h>
#include <nvshmemx.h>

#include "tests/device/device_suite.hpp"
#include "tests/device/virtual_memory.cuh"

namespace {

constexpr std::size_t kBytes = std::size_t{4} << 20U;
constexpr int kCount = kBytes / sizeof(int);

void fill(int* buffer, int value) {
  const std::vector<int> values(kCount, value);
  suite::require_cuda(cudaMemcpy(buffer, values.data(), kBytes, cudaMemcpyHostToDevice),
                      "to the GPU");
  suite::require_cuda(cudaStreamSynchronize(nullptr), "to the GPU");
}

void expect(const char* what, const int* buffer, int value) {
  std::vector<int> seen(kCount);
  suite::require_cuda(cudaMemcpy(seen.data(), buffer, kBytes, cudaMemcpyDeviceToHost),
                      "from the GPU");
  for (int i = 0; i < kCount; ++i) {
    if (seen[i] != value) {
      suite::fail("%s: element %d is %d, not %d", what, i, seen[i], value);
      return;
    }
  }
}

__global__ void __launch_bounds__(256, 1) put(int* dest, const int* source, int pe) {
  nvshmemx_int_put_block(dest, source, kCount, pe);
}

DEVICE_TEST(local, "GPU memory that is registered is a local side, and managed memory is refused") {
  const int next = (suite::me() + 1) % suite::pe_count();
  const int last = (suite::me() + suite::pe_count() - 1) % suite::pe_count();
  auto* dest = static_cast<int*>(nvshmem_malloc(kBytes));
  int* own = nullptr;
  suite::require_cuda(cudaMalloc(&own, kBytes), "cudaMalloc");
  suite::require(nvshmemx_buffer_register(own, kBytes) == 0, "nvshmemx_buffer_register");
  if (nvshmemx_buffer_register(own + 1, 8) != NVSHMEMX_ERROR_INVALID_VALUE) {
    suite::fail("a buffer in a registered buffer was registered");
  }
  fill(own, suite::me() + 1);
  nvshmem_barrier_all();
  put<<<1, 256>>>(dest, own, next);
  suite::finish("put");
  expect("put", dest, last + 1);
  nvshmem_barrier_all();
  nvshmem_int_get(own, dest, kCount, next);
  expect("get", own, suite::me() + 1);
  int* managed = nullptr;
  suite::require_cuda(cudaMallocManaged(&managed, 4096), "cudaMallocManaged");
  if (nvshmemx_buffer_register(managed, 4096) != NVSHMEMX_ERROR_INVALID_VALUE) {
    suite::fail("managed memory was registered");
  }
  suite::require(nvshmemx_buffer_unregister(own) == 0, "nvshmemx_buffer_unregister");
  suite::require_cuda(cudaFree(own), "cudaFree");
  suite::require_cuda(cudaFree(managed), "cudaFree");
  nvshmem_free(dest);
}

DEVICE_TEST(symmetric,
            "a buffer of cuMemCreate becomes symmetric, and other memory gives a null pointer") {
  if (suite::heap_is_fixed()) {
    return;
  }
  const int next = (suite::me() + 1) % suite::pe_count();
  const int last = (suite::me() + suite::pe_count() - 1) % suite::pe_count();
  const suite::VirtualMemory mine(kBytes);
  int* plain = nullptr;
  suite::require_cuda(cudaMalloc(&plain, kBytes), "cudaMalloc");
  if (nvshmemx_buffer_register_symmetric(plain, kBytes, 0) != nullptr) {
    suite::fail("memory of cudaMalloc became symmetric");
  }
  auto* buffer = static_cast<int*>(nvshmemx_buffer_register_symmetric(mine.get(), kBytes, 0));
  suite::require(buffer != nullptr, "nvshmemx_buffer_register_symmetric");
  fill(plain, suite::me() + 5);
  nvshmem_barrier_all();
  put<<<1, 256>>>(buffer, plain, next);
  suite::finish("put");
  expect("the symmetric address", buffer, last + 5);
  expect("the program's own", reinterpret_cast<const int*>(mine.get()), last + 5);
  if (nvshmemx_buffer_unregister_symmetric(buffer, 8) != NVSHMEMX_ERROR_INVALID_VALUE) {
    suite::fail("a size that is not the buffer's was accepted");
  }
  nvshmem_barrier_all();
  suite::require(nvshmemx_buffer_unregister_symmetric(buffer, kBytes) == 0,
                 "nvshmemx_buffer_unregister_symmetric");
  if (nvshmemx_buffer_unregister_symmetric(buffer, kBytes) != NVSHMEMX_ERROR_INVALID_VALUE) {
    suite::fail("it was unregistered twice");
  }
  auto* again = static_cast<int*>(
      nvshmemx_buffer_register_symmetric_at_preferred_address(mine.get(), kBytes, buffer, 0));
  suite::require(again != nullptr, "nvshmemx_buffer_register_symmetric_at_preferred_address");
  put<<<1, 256>>>(again, plain, next);
  suite::finish("put");
  expect("at any address", again, last + 5);
  suite::require(nvshmemx_buffer_unregister_symmetric(again, kBytes) == 0,
                 "nvshmemx_buffer_unregister_symmetric");
  expect("still the program's", reinterpret_cast<const int*>(mine.get()), last + 5);
  suite::require_cuda(cudaFree(plain), "cudaFree");
}

}  // namespace
