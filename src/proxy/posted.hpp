// What kernels have posted to a command ring, as a host thread that is not the proxy's sees it.
//
// Threads: any. The proxy and the GPU go on meanwhile. Makes no CUDA call: a synchronous copy would
// wait for kernels of the program.
#pragma once

#include <algorithm>
#include <cstdint>

#include "src/proxy/ring_memory.hpp"

namespace weft::proxy {

// The position below which every command lies that was posted before the call. Threads that have
// claimed a slot and not filled it yet leave holes, so the whole ring is looked at.
[[nodiscard]] inline std::uint64_t posted_below(const device::RingView& ring) {
  const device::RingConsumer<HostMemory> consumer(ring);
  const std::uint64_t first = HostMemory::load_far(ring.consumed());
  std::uint64_t below = first;
  device::Command command;
  for (std::uint64_t position = first; position < first + ring.capacity; ++position) {
    if (consumer.peek(position, command)) {
      below = position + 1;
    }
  }
  // Slots that were taken and filled again during the look were not recognized.
  return std::max(below, HostMemory::load_far(ring.consumed()));
}

// Whether all commands below the position are complete.
[[nodiscard]] inline bool is_complete_below(const device::RingView& ring, std::uint64_t position) {
  // SYNC ring-progress (pairs with include/weft/device/ring.hpp): what the commands did.
  return HostMemory::load_far(ring.completed()) >= position;
}

}  // namespace weft::proxy
