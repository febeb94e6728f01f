// Memory that a program has allocated by CUDA's virtual memory management.
#pragma once

#include <cuda.h>
#include <cuda_runtime_api.h>

#include <cstddef>
#include <cstdint>
#include <cstdlib>
#include <cstring>

#include "tests/device/device_suite.hpp"

namespace suite {

template <typename Function>
Function driver(const char* name) {
  void* entry = nullptr;
  cudaDriverEntryPointQueryResult found{};
  require_cuda(cudaGetDriverEntryPointByVersion(name, &entry, 12040, cudaEnableDefault, &found),
               name);
  return reinterpret_cast<Function>(entry);
}

inline void require_driver(CUresult result, const char* what) {
  require_cuda(result == CUDA_SUCCESS ? cudaSuccess : cudaErrorUnknown, what);
}

// Nothing can be mapped into such a heap; the case is then skipped.
inline bool heap_is_fixed() {
  const char* kind = std::getenv("WEFT_DEVICE_MEMORY");
  const char* most = std::getenv("WEFT_DEVICE_HEAP_MAX");
  const bool is_fixed =
      (kind != nullptr && std::strcmp(kind, "ipc") == 0) || (most != nullptr && most[0] == '0');
  if (is_fixed) {
    skip("WEFT_DEVICE_MEMORY or WEFT_DEVICE_HEAP_MAX give the heap a fixed size");
  }
  return is_fixed;
}

// An allocation of virtual memory management on the current GPU, mapped once.
class VirtualMemory {
 public:
  explicit VirtualMemory(
      std::size_t bytes,
      CUmemAllocationHandleType handles = CU_MEM_HANDLE_TYPE_POSIX_FILE_DESCRIPTOR)
      : bytes_(bytes) {
    CUmemAllocationProp properties{};
    properties.type = CU_MEM_ALLOCATION_TYPE_PINNED;
    properties.requestedHandleTypes = handles;
    properties.location.type = CU_MEM_LOCATION_TYPE_DEVICE;
    require_cuda(cudaGetDevice(&properties.location.id), "cudaGetDevice");
    properties.allocFlags.gpuDirectRDMACapable = 1;
    require_driver(driver<decltype(&cuMemCreate)>("cuMemCreate")(&handle_, bytes, &properties, 0),
                   "cuMemCreate");
    require_driver(
        driver<decltype(&cuMemAddressReserve)>("cuMemAddressReserve")(&address_, bytes, 0, 0, 0),
        "cuMemAddressReserve");
    require_driver(driver<decltype(&cuMemMap)>("cuMemMap")(address_, bytes, 0, handle_, 0),
                   "cuMemMap");
    const CUmemAccessDesc access{properties.location, CU_MEM_ACCESS_FLAGS_PROT_READWRITE};
    require_driver(driver<decltype(&cuMemSetAccess)>("cuMemSetAccess")(address_, bytes, &access, 1),
                   "cuMemSetAccess");
  }

  VirtualMemory(const VirtualMemory&) = delete;
  VirtualMemory& operator=(const VirtualMemory&) = delete;

  ~VirtualMemory() {
    driver<decltype(&cuMemUnmap)>("cuMemUnmap")(address_, bytes_);
    driver<decltype(&cuMemRelease)>("cuMemRelease")(handle_);
    driver<decltype(&cuMemAddressFree)>("cuMemAddressFree")(address_, bytes_);
  }

  [[nodiscard]] std::uint32_t* get() const { return reinterpret_cast<std::uint32_t*>(address_); }

  [[nodiscard]] std::size_t bytes() const { return bytes_; }

 private:
  std::size_t bytes_;
  CUmemGenericAllocationHandle handle_{};
  CUdeviceptr address_ = 0;
};

}  // namespace suite
