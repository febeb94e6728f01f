// The GPU that this PE has taken: what it is, and whether Weft can use it. No CUDA type leaves this folder
// in a header, so that everything above is compiled alike with and without CUDA: gpu/cuda implements
// it, gpu/none says that there is none.
//
// Threads: any. Errors: Error, one sentence with CUDA's words and what to do.
#pragma once

#include <array>
#include <cstdint>
#include <string>

namespace weft::gpu {

struct Device {
  std::int32_t index = -1;  // as CUDA numbers those that this process sees
  std::string name;
  std::array<std::uint8_t, 16> uuid{};
  std::string pci;  // "0000:1b:00.0"
  std::uint64_t bytes = 0;
  std::int32_t driver_version = 0;  // as CUDA counts: 13000 is 13.0
  bool has_posix_handles = false;   // memory whose handle is a file descriptor
  bool has_fabric_handles =
      false;                      // memory whose handle other nodes of an NVLink domain may import
  bool has_rdma = false;          // NICs may read and write its memory
  bool has_dma_buf = false;       // and take it as a dma-buf
  bool needs_rdma_flush = false;  // what a NIC wrote is not at once visible to kernels
};

// The calling thread's current one. Throws if there is none, or the driver is older than 12.4.
[[nodiscard]] Device current_device();

// Of the GPUs that this process sees. Throws as current_device does.
[[nodiscard]] std::int32_t device_count();

// The GPU that CUDA calls `index`; makes no context on it. Throws if CUDA has no such GPU.
[[nodiscard]] Device describe_device(std::int32_t index);

// False where libweft was built without CUDA.
[[nodiscard]] bool is_built_in();

// Makes `device` the calling thread's. Throws.
void use_device(const Device& device);
// The same on a path that is taken often: asks CUDA only the first time in each thread.
void use_device_once(const Device& device) noexcept;

// Whether `address` is memory of a GPU. False also where there is no CUDA.
[[nodiscard]] bool is_device_memory(const void* address);

}  // namespace weft::gpu
