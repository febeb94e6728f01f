// Small copies of this PE, several at once: they wait in a batch per peer and direction until the
// batch is full, until the caller flushes, or until the progress thread finds them.
//
// Threads: any. Each batch has a lock of its own, taken before CommandSender's.
#pragma once

#include <cstdint>

#include "src/base/atomic.hpp"
#include "src/base/status.hpp"
#include "src/transport/cma/command_sender.hpp"
#include "src/transport/cma/peer.hpp"
#include "src/transport/operation.hpp"

namespace weft::transport::cma {

class BatchedCopies {
 public:
  // Both outlive it. `sender` takes the copies that the kernel forbids.
  BatchedCopies(const NodePeers& peers, CommandSender& sender) : peers_(peers), sender_(sender) {}

  // Adds a small put or get. Again: the batch is full, and the chunks are as well.
  [[nodiscard]] Status add(NodePeer& peer, const Operation& operation);

  // Copies what waits for the peer.
  void flush(NodePeer& peer);
  // The same for all peers, except batches that another thread is handling. True if anything moved.
  bool flush_all();

  [[nodiscard]] bool has_items() const {
    // relaxed: a thread sees its own batches; it sees those of another thread slightly later.
    return AtomicRef(open_count_).load(std::memory_order_relaxed) != 0;
  }

 private:
  // Called under the batch's lock. True if there were items.
  bool issue(NodePeer& peer, CmaDirection direction);
  static void copy_oldest(NodePeer& peer, CmaDirection direction);
  [[nodiscard]] bool bounce_oldest(NodePeer& peer, CmaDirection direction);

  const NodePeers& peers_;
  CommandSender& sender_;
  mutable std::uint32_t open_count_ = 0;
};

}  // namespace weft::transport::cma
