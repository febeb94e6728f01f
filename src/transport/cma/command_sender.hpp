// The sender's side of cma's commands: the operations that targets execute for this PE. A status
// slot waits for each answer. If the kernel forbids cross-memory attach, an operation is copied in
// pieces through chunks of this PE's mailbox (bounce buffers), and the target copies them out; the
// target's ring keeps the order, so the last piece carries the signal.
//
// Threads: any. One lock guards everything here.
#pragma once

#include <array>
#include <cstdint>
#include <functional>
#include <mutex>
#include <optional>

#include "src/base/atomic.hpp"
#include "src/base/ids.hpp"
#include "src/base/status.hpp"
#include "src/transport/cma/mailbox.hpp"
#include "src/transport/cma/peer.hpp"
#include "src/transport/cma/transfers.hpp"
#include "src/transport/operation.hpp"

namespace weft::transport::cma {

class CommandSender {
 public:
  // All references outlive it. An empty `is_dead`: no peer dies.
  CommandSender(Pe me,
                const Mailbox& own,
                const NodePeers& peers,
                const std::function<bool(Pe)>& is_dead)
      : me_(me), own_(own), peers_(peers), is_dead_(is_dead), board_(own.memory().statuses) {}

  // Again: no slot is free, or the target's ring is full.
  Status post(NodePeer& peer, const Operation& operation, NodeCommandKind kind);
  // The same through chunks.
  [[nodiscard]] Status bounce(NodePeer& peer, const Operation& operation);
  // For an operation that has been issued already: collect sends it. False: there is no room.
  [[nodiscard]] bool bounce_later(const Operation& operation);

  // Handles answers, and sends pieces that had no room. True if anything moved.
  bool collect();
  // Fails the operations of peers that have died; looks only now and then.
  bool fail_lost_peers();

  // Never blocks; true also if another thread holds the lock, as for CommandServer.
  [[nodiscard]] bool has_news();

  // Whether pieces may wait for room. A peer that frees room in its ring rings no bell.
  [[nodiscard]] bool has_transfers() const {
    // relaxed: a hint.
    return AtomicRef(open_transfers_).load(std::memory_order_relaxed) != 0;
  }

 private:
  // The functions below are called under the lock. Returns Again, or fails the operation because
  // the peer is dead.
  [[nodiscard]] Status again(NodePeer& peer, const Operation& operation);
  void on_answer(Sent& sent, const Answer& given);
  void fail_sent(Sent& sent);

  [[nodiscard]] std::optional<std::uint32_t> start_transfer(const Operation& operation,
                                                            std::uint32_t count_max);
  void release_transfer(std::uint32_t index);
  bool send_pieces(NodePeer& peer, std::uint32_t index);
  [[nodiscard]] bool send_piece(NodePeer& peer, std::uint32_t index);
  void end_piece(const Sent& piece, bool failed);
  void end_transfer_if_done(std::uint32_t index);
  bool send_rest();

  Pe me_;
  const Mailbox& own_;
  const NodePeers& peers_;
  const std::function<bool(Pe)>& is_dead_;
  std::mutex mutex_;
  StatusBoard<kStatusSlots> board_;
  std::array<Sent, kStatusSlots> sent_{};  // by status slot
  TransferTable transfers_;
  ChunkPool chunks_;
  mutable std::uint32_t open_transfers_ = 0;
  std::uint64_t next_check_ns_ = 0;
};

}  // namespace weft::transport::cma
