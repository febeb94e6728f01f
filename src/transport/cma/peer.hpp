// A PE of the same node as cma knows it: its process, its mailbox and regions, the small copies
// that wait for it, and what was found out about it. NodePeers lists those of a job by PE.
//
// Threads: any. The list changes only in connect. Flags are sticky; batches have locks of their
// own.
#pragma once

#include <array>
#include <cstdint>
#include <memory>
#include <utility>
#include <vector>

#include "src/base/atomic.hpp"
#include "src/base/ids.hpp"
#include "src/transport/cma/batch.hpp"
#include "src/transport/cma/mailbox.hpp"
#include "src/transport/cma/regions.hpp"
#include "src/transport/cma/vm_copy.hpp"
#include "src/transport/operation.hpp"

namespace weft::transport::cma {

class NodePeer {
 public:
  NodePeer(Pe number, std::int64_t process, Mailbox its_mailbox, const RegionTable& its_regions)
      : pe(number), pid(process), mailbox(std::move(its_mailbox)), regions(its_regions) {}

  Pe pe;
  std::int64_t pid;
  Mailbox mailbox;
  RegionTable regions;
  std::array<CopyBatch, 2> batches;  // by direction
  std::uint64_t next_check_ns = 0;   // whether it is alive; guarded by CommandSender's lock

  [[nodiscard]] CopyBatch& batch(CmaDirection direction) {
    return batches[static_cast<std::size_t>(direction)];
  }

  // Whether the peer has the memory that the operation names.
  [[nodiscard]] bool has(const Operation& operation) const;

  // relaxed: sticky; publishes no other data. The same for the next functions.
  [[nodiscard]] bool is_lost() const {
    return AtomicRef(is_lost_).load(std::memory_order_relaxed) != 0;
  }

  void lose() const {
    AtomicRef(is_lost_).store(1, std::memory_order_relaxed);  // as above
  }

  // Whether the kernel forbids copies by cross-memory attach.
  [[nodiscard]] bool is_forbidden() const {
    return AtomicRef(is_forbidden_).load(std::memory_order_relaxed) != 0;  // as above
  }

  // Warns at the first peer of this process.
  void forbid() const;

  // Logs that a copy accessed unmapped memory; once per peer, because one bad address often affects
  // many operations.
  void log_fault(const Operation& operation) const;

 private:
  mutable std::uint32_t is_lost_ = 0;
  mutable std::uint32_t is_forbidden_ = 0;
  mutable std::uint32_t has_faulted_ = 0;
};

// By PE; null: not reached by cma.
using NodePeers = std::vector<std::unique_ptr<NodePeer>>;

[[nodiscard]] inline NodePeer* find(const NodePeers& peers, Pe pe) {
  return pe.value < peers.size() ? peers[pe.value].get() : nullptr;
}

}  // namespace weft::transport::cma
