// Whether the NICs carry data from GPU to GPU: the device heap is offered to all rails of all PEs, and every
// pair of PEs whose rails have all taken it goes without staging (docs/decisions/0011).
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

// What became of it. Empty: no peer is reached by rails.
struct DirectHeap {
  RegionIndex region;
  std::vector<bool> peers;  // by PE: data goes there, and comes from there, directly
  std::vector<transport::rails::DeviceRail> rails;  // of this PE, and why
  std::string refusal;  // why this PE offered no rail its heap; else empty
};

// The device heap as rails are asked to take it. Holds the dma-buf, if there is one, until it goes.
struct DirectOffer {
  fabric::DeviceMemory memory;
  gpu::DmaBuf pages;
  std::string refusal;  // why it is not offered at all; else empty
};

// `mode` is WEFT_DEVICE_DIRECT.
[[nodiscard]] DirectOffer make_direct_offer(std::string_view mode,
                                            const gpu::Device& device,
                                            gpu::MemoryKind kind,
                                            std::span<std::byte> heap);

// All PEs tell each other. `region` is the next number of a region. Throws Error, the same on all PEs, if the
// mode of any PE is "on" and a PE cannot.
[[nodiscard]] DirectHeap connect_device_heap(transport::rails::RailsTransport& rails,
                                             bootstrap::Bootstrap& bootstrap,
                                             RegionIndex region,
                                             std::string_view mode,
                                             const DirectOffer& offer);

// One line for a rail: "nic0: dma-buf (...)".
[[nodiscard]] std::string describe(const transport::rails::DeviceRail& rail);

}  // namespace weft::runtime
