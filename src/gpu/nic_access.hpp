// The requirements for NIC access (GPUDirect RDMA) to the memory of this PE's GPU: permission,
// pages, and write ordering.
//
// If the platform does not order a NIC's writes before later reads by the GPU (device attribute
// GPU_DIRECT_RDMA_WRITES_ORDERING), they are flushed after the NIC has reported them and before any
// thread of the GPU is told of them (CUDA driver API, cuFlushGPUDirectRDMAWrites). An H100 orders
// them for its own kernels alone; where others of the node read its memory over NVLink, as all of a
// node do what came for it (WEFT_MOE_ROW_PER_NODE), they are flushed to all.
//
// Threads: any.
#pragma once

#include <cstddef>
#include <cstdint>
#include <span>
#include <string>

#include "src/base/error.hpp"
#include "src/base/file_descriptor.hpp"
#include "src/gpu/device.hpp"
#include "src/gpu/segments.hpp"

namespace weft::gpu {

// Whether a GPU may be present: there is a driver. Makes no slow query.
[[nodiscard]] bool has_driver();

// Why NICs may not access memory of this kind on the GPU, in one sentence; empty if they may.
[[nodiscard]] std::string nic_refusal(const Device& device, MemoryKind kind);

// A dma-buf of device memory, for the kernel to pass to a NIC.
struct DmaBuf {
  FileDescriptor descriptor;  // required until the memory is registered
  std::uint64_t offset = 0;   // where the memory starts in it
  std::string why_not;        // set if there is no descriptor
};

// For `memory` and what else is on its first and last page.
[[nodiscard]] DmaBuf dma_buf_of(const Device& device, std::span<std::byte> memory);

// Makes the writes to this GPU that NICs have reported visible to all that read them before it
// returns. Does nothing if the platform guarantees that. False if it failed.
[[nodiscard]] bool show_nic_writes(const Device& device) noexcept;

// The same on any thread of the program. Aborts if it failed: the GPU might see a signal before its
// data, and nothing would tell.
inline void require_nic_writes(const Device& device) noexcept {
  if (device.nic_writes_seen_by < device.nic_writes_read_by) {
    const BorrowedThread borrowed;
    WEFT_CHECK(show_nic_writes(device), "GPU {} did not flush what NICs wrote", device.index);
  }
}

}  // namespace weft::gpu
