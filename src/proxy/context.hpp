// State shared by the streams of one engine: its interfaces, memory and rings. References only; the
// engine owns the objects, or was given them.
//
// Threads: only the proxy's.
#pragma once

#include <algorithm>
#include <cstddef>
#include <cstdint>
#include <functional>
#include <optional>
#include <vector>

#include "src/base/ids.hpp"
#include "src/base/status.hpp"
#include "src/heap/chunk_map.hpp"
#include "src/proxy/active_peers.hpp"
#include "src/proxy/command_consumer.hpp"
#include "src/proxy/copier.hpp"
#include "src/proxy/inbox_writer.hpp"
#include "src/proxy/staging.hpp"
#include "src/proxy/turns.hpp"
#include "src/transport/transport.hpp"

namespace weft::proxy {

// The local memory of a symmetric region.
struct RegionMemory {
  RegionIndex region;
  std::byte* base = nullptr;
  std::uint64_t bytes = 0;
};

// Called if a command failed: its peer is lost (PeerLost), or it names memory or a PE that cannot
// be reached by command (InvalidArgument). The proxy's thread calls it for each such command, and
// with Nop when a peer is found to be lost. It must not block.
using FailureHook = std::function<void(Pe, device::CommandKind, Status)>;

// Called once if copies between the GPU and host memory fail: from then on no operation completes.
// By the proxy's thread; must not block.
using CopyFailureHook = std::function<void(const std::string& why)>;

// Limits per peer, so that memory is bounded for any number of peers: 24 MiB in jobs of 128 PEs, 51
// MiB in jobs of 4096. The same on all PEs.
struct PeerLimits {
  std::uint32_t commands;  // queued after removal from the rings
  std::uint32_t requests;  // outstanding gets and fetching atomics: a peer reserves as many answers

  static constexpr PeerLimits of(std::uint32_t pe_count) {
    constexpr std::uint32_t kAll = 32768;
    const std::uint32_t count = std::clamp(kAll / pe_count, 16U, 256U);
    return {.commands = count, .requests = count};
  }
};

struct EngineContext {
  transport::Transport& transport;
  Copier& copier;
  InboxWriter& inbox;
  Turns& inbox_turns;          // of the peers that send to it
  ActivePeers& with_work;      // whose Outgoing has something to do
  ActivePeers& with_unfenced;  // whose Outgoing the next fence concerns
  std::vector<CommandConsumer>& rings;
  const FailureHook& on_failed;
  StagingLayout layout;
  PeerLimits limits;
  RegionMemory staging;
  // The symmetric device heap as it starts: GPU addresses, never accessed by this thread. `region`
  // is its number for peers that are direct.
  RegionMemory heap;
  heap::ChunkReader& chunks;   // with those that the heap has grown by
  heap::ChunkReader& windows;  // see EngineMemory::windows
  Pe me;
  std::vector<bool> is_direct;  // by PE: NICs transfer data from GPU to GPU
  std::uint64_t direct_bytes_min = 0;

  [[nodiscard]] std::uint64_t& word(std::size_t offset) const {
    return *reinterpret_cast<std::uint64_t*>(staging.base + offset);
  }

  [[nodiscard]] heap::Place in_staging(std::size_t offset) const {
    return {.region = staging.region, .offset = HeapOffset(offset)};
  }

  [[nodiscard]] bool is_in_heap(std::uint64_t offset, std::uint64_t bytes) const {
    return is_in_first_chunk(offset, bytes) || heap::covers(chunks.now(), offset, bytes);
  }

  [[nodiscard]] std::uint64_t heap_address() const {
    return reinterpret_cast<std::uint64_t>(heap.base);
  }

  // Where NICs find the range at every direct PE. Empty if it is not in one chunk: each is a region
  // of its own.
  [[nodiscard]] std::optional<heap::Place> on_rails(std::uint64_t offset,
                                                    std::uint64_t bytes) const {
    if (is_in_first_chunk(offset, bytes)) {
      return heap::Place{.region = heap.region, .offset = HeapOffset(offset)};
    }
    const heap::Chunk* chunk = heap::chunk_around(chunks.now(), offset, bytes);
    return chunk == nullptr
               ? std::nullopt
               : std::optional(heap::Place{.region = chunk->region,
                                           .offset = HeapOffset(offset - chunk->offset)});
  }

  // Whether this PE's rails have registered the range of its GPU's memory: in one chunk of its
  // heap, or in a window.
  [[nodiscard]] bool is_registered(std::uint64_t address, std::uint64_t bytes) const {
    const std::uint64_t base = heap_address();
    return (address >= base && on_rails(address - base, bytes).has_value()) ||
           heap::chunk_around(windows.now(), address, bytes) != nullptr;
  }

 private:
  [[nodiscard]] bool is_in_first_chunk(std::uint64_t offset, std::uint64_t bytes) const {
    return offset <= heap.bytes && bytes <= heap.bytes - offset;
  }
};

}  // namespace weft::proxy
