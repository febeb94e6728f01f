// What the streams of one engine share: its seams, its memory, its rings. References only; the engine
// owns what they point to, or was given it.
//
// Threads: the proxy's only.
#pragma once

#include <cstddef>
#include <cstdint>
#include <functional>
#include <vector>

#include "src/base/ids.hpp"
#include "src/base/status.hpp"
#include "src/proxy/command_ring.hpp"
#include "src/proxy/copier.hpp"
#include "src/proxy/inbox_writer.hpp"
#include "src/proxy/staging.hpp"
#include "src/transport/transport.hpp"

namespace weft::proxy {

// A symmetric region as it lies here.
struct RegionMemory {
  RegionIndex region;
  std::byte* base = nullptr;
  std::uint64_t bytes = 0;
};

// A command could not be done: its peer is lost (PeerLost), or it names memory or a PE that cannot be
// reached this way (InvalidArgument). Called by the proxy's thread for each such command, and with Nop when
// a peer is found to be lost; must not block.
using FailureHook = std::function<void(Pe, device::CommandKind, Status)>;

// How many gets and fetching atomics one PE may have outstanding at one peer: so many answers a peer
// keeps ready.
inline constexpr std::uint32_t kRequestsMax = 256;

struct Context {
  transport::Transport& transport;
  Copier& copier;
  InboxWriter& inbox;
  std::vector<CommandRing>& rings;
  const FailureHook& on_failed;
  StagingLayout layout;
  RegionMemory staging;
  RegionMemory
      heap;  // the symmetric device heap: an address of the GPU, never touched by this thread
  Pe me;

  [[nodiscard]] std::uint64_t& word(std::size_t offset) const {
    return *reinterpret_cast<std::uint64_t*>(staging.base + offset);
  }

  [[nodiscard]] transport::RemoteAddress in_staging(std::size_t offset) const {
    return {.region = staging.region, .offset = HeapOffset(offset)};
  }

  [[nodiscard]] bool is_in_heap(std::uint64_t offset, std::uint64_t bytes) const {
    return offset <= heap.bytes && bytes <= heap.bytes - offset;
  }
};

}  // namespace weft::proxy
