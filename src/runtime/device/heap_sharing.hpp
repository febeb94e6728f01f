// How the PEs of a job come to their device heaps: each takes memory on its GPU, offers it to the
// PEs of its node, and maps theirs. Handles of one kind may be refused where others work (no right
// to take a descriptor, a fabric channel that does not reach): kinds are tried in turn, by all PEs
// together, until one serves all of them.
//
// Collective; one thread.
#pragma once

#include <cstdint>
#include <functional>
#include <memory>
#include <optional>
#include <span>
#include <string>
#include <vector>

#include "src/base/config.hpp"
#include "src/base/function_ref.hpp"
#include "src/bootstrap/bootstrap.hpp"
#include "src/gpu/device.hpp"
#include "src/gpu/inventory.hpp"
#include "src/gpu/segments.hpp"
#include "src/heap/device_heap.hpp"

namespace weft::runtime {

struct HeapSharing {
  const Config& config;
  bootstrap::Bootstrap& bootstrap;
  // By PE: its place among the PEs of this node; empty for PEs of other nodes.
  std::vector<std::optional<std::uint32_t>> slots;
  std::function<std::unique_ptr<gpu::Segments>(const gpu::Device&, const gpu::SegmentPlan&)>
      make_segments = gpu::make_segments;
  std::function<std::vector<bool>(const gpu::Device&, std::span<const std::string>)> have_atomics =
      gpu::have_atomics;
};

struct SharedHeap {
  std::unique_ptr<heap::DeviceHeap> heap;  // with the PEs of the node mapped
  std::uint64_t alignment_max = 0;         // of a block: what the heaps of all PEs have
};

// `take_device` returns this PE's GPU, and throws if it has none. Throws Error, the same on all
// PEs.
[[nodiscard]] SharedHeap share_heaps(const HeapSharing& with,
                                     FunctionRef<const gpu::Device&()> take_device);

}  // namespace weft::runtime
