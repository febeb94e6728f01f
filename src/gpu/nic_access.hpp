// What NICs need to reach the memory of this PE's GPU: permission, pages, and an order of their writes.
//
// Where the platform does not order a NIC's writes before what the GPU reads later (device attribute
// GPU_DIRECT_RDMA_WRITES_ORDERING), they are flushed after the NIC has reported them and before any thread of
// the GPU is told of them (CUDA driver API, cuFlushGPUDirectRDMAWrites).
//
// Threads: any.
#pragma once

#include <cstddef>
#include <span>
#include <string>

#include "src/base/file_descriptor.hpp"
#include "src/gpu/device.hpp"
#include "src/gpu/segments.hpp"

namespace weft::gpu {

// True if a GPU may be found here: there is a driver. Asks nothing that takes long.
[[nodiscard]] bool has_driver();

// Why NICs may not reach memory of this kind on the GPU, in one sentence; empty if they may.
[[nodiscard]] std::string nic_refusal(const Device& device, MemoryKind kind);

// The pages of device memory, for the kernel to hand to a NIC.
struct DmaBuf {
  FileDescriptor descriptor;  // needed until the memory is registered
  std::string why_not;        // if there is no descriptor
};

// Exactly `memory`, which begins and ends with a page.
[[nodiscard]] DmaBuf dma_buf_of(const Device& device, std::span<std::byte> memory);

// What NICs have reported as written to this GPU is visible to its threads when it returns. Does nothing
// where the platform sees to that. False: it could not be done.
[[nodiscard]] bool show_nic_writes(const Device& device) noexcept;

}  // namespace weft::gpu
