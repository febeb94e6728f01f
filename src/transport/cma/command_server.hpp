// The target's side of cma: executes the commands that peers wrote into this PE's mailbox, and
// answers them, each exactly once.
//
// Threads: any. One lock guards the ring's consumer; a thread that finds it taken leaves the
// commands to its owner.
#pragma once

#include <functional>
#include <mutex>

#include "src/base/ids.hpp"
#include "src/transport/cma/mailbox.hpp"
#include "src/transport/cma/mpsc_ring.hpp"
#include "src/transport/cma/peer.hpp"
#include "src/transport/cma/regions.hpp"

namespace weft::transport::cma {

class CommandServer {
 public:
  // `regions` is this PE's memory. All arguments outlive it.
  CommandServer(const Mailbox& own,
                const RegionTable& regions,
                const NodePeers& peers,
                const std::function<bool(Pe)>& is_dead)
      : regions_(regions), peers_(peers), is_dead_(is_dead), commands_(own.memory().ring) {}

  // Executes what has arrived, at most one ring full. True if there was a command.
  bool drain();

  // Never blocks. A thread that holds the lock is making progress and may miss a command that
  // arrives just then, so the answer is true.
  [[nodiscard]] bool has_news();

  // Returns when no command that has already been taken is being executed any more.
  void wait_for_executions() { const std::lock_guard drained(mutex_); }

 private:
  [[nodiscard]] Answer execute(const NodeCommand& command, const NodePeer& sender);
  [[nodiscard]] SlotState copy_for(const NodeCommand& command, const NodePeer& sender);
  [[nodiscard]] static SlotState copy_by_attach(const NodeCommand& command,
                                                std::byte* here,
                                                const NodePeer& sender);

  const RegionTable& regions_;
  const NodePeers& peers_;
  const std::function<bool(Pe)>& is_dead_;
  std::mutex mutex_;
  MpscConsumer<NodeCommand, kRingSlots> commands_;
};

}  // namespace weft::transport::cma
