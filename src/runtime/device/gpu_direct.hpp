// Decides whether the NICs carry data from GPU to GPU. The device heap is offered to all rails of
// all PEs. A pair of PEs whose rails have all registered it bypasses staging (docs/decisions/0011).
//
// Threads: as the runtime's setup. Collective.
#pragma once

#include <cstddef>
#include <span>
#include <string>
#include <string_view>
#include <vector>

#include "src/base/ids.hpp"
#include "src/bootstrap/bootstrap.hpp"
#include "src/fabric/rail.hpp"
#include "src/gpu/nic_access.hpp"
#include "src/transport/rails/rails_transport.hpp"

namespace weft::runtime {

// The result of the offer. Empty if no peer is reached by rails.
struct GpuDirectHeap {
  RegionIndex region;
  std::vector<RegionIndex> chunk_regions;           // numbers that are kept for later chunks
  std::vector<bool> peers;                          // by PE: data is exchanged directly with it
  std::vector<transport::rails::DeviceRail> rails;  // of this PE, with the reason for each
  std::string refusal;  // why this PE offered the heap to no rail; else empty
  bool is_used =
      false;  // there is a PE whose rails have all registered its heap; the same on all PEs

  // All rails of this PE have registered the heap. Then they must register each chunk that it grows
  // by.
  [[nodiscard]] bool is_registered() const;
  // Why they have not; else empty.
  [[nodiscard]] std::string why_not() const;
};

// The device heap in the form in which rails register it. Holds the dma-buf, if there is one.
struct GpuDirectOffer {
  fabric::DeviceMemory memory;
  gpu::DmaBuf pages;
  std::string refusal;  // why it is not offered at all; else empty
};

// `mode` is WEFT_DEVICE_DIRECT.
[[nodiscard]] GpuDirectOffer make_gpu_direct_offer(std::string_view mode,
                                                   const gpu::Device& device,
                                                   gpu::MemoryKind kind,
                                                   std::span<std::byte> heap);

// All PEs exchange their results. `region` is the next region number. Throws Error, the same on all
// PEs, if any PE's mode is "on" and a PE does not support it.
[[nodiscard]] GpuDirectHeap connect_device_heap(transport::rails::RailsTransport& rails,
                                                bootstrap::Bootstrap& bootstrap,
                                                RegionIndex region,
                                                std::string_view mode,
                                                const GpuDirectOffer& offer);

// A chunk by which the heap grows.
struct GpuDirectChunk {
  RegionIndex region;  // its number
  fabric::DeviceMemory memory;
  bool is_offered = false;  // this PE's rails have registered the heap
};

// As connect_device_heap, for a chunk. Throws Error (OutOfMemory), the same on all PEs, if a rail
// does not register what its PE offers; then no rail of any PE keeps the chunk.
void connect_device_chunk(transport::rails::RailsTransport& rails,
                          bootstrap::Bootstrap& bootstrap,
                          const GpuDirectChunk& chunk);

// Ends that. Collective, when no operation of any PE accesses the chunk any more.
void disconnect_device_chunk(transport::rails::RailsTransport& rails,
                             RegionIndex region,
                             std::span<std::byte> memory) noexcept;

// Registers GPU memory of this PE alone with its rails, as the local side of direct transfers. Not
// collective. Returns the first rail that refuses, and why; then none keeps it. Empty if all have.
[[nodiscard]] std::string connect_device_window(transport::rails::RailsTransport& rails,
                                                const fabric::DeviceMemory& memory);

// One line for a rail: "nic0: dma-buf (...)".
[[nodiscard]] std::string describe(const transport::rails::DeviceRail& rail);

}  // namespace weft::runtime
