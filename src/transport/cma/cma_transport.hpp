// The Transport to PEs of the same node whose memory cannot be mapped. The caller copies through cross-memory
// attach, or leaves the copy to the target if the sender fans out. The target always executes atomics and
// signals, exactly once.
//
// Threads: any. One lock guards the commands that this PE has sent, another the draining of its ring. Small
// copies are batched under a lock per peer.
#pragma once

#include <array>
#include <functional>
#include <memory>
#include <mutex>
#include <optional>
#include <span>
#include <vector>

#include "src/bootstrap/bootstrap.hpp"
#include "src/transport/cma/batch.hpp"
#include "src/transport/cma/fan_out.hpp"
#include "src/transport/cma/mailbox.hpp"
#include "src/transport/cma/regions.hpp"
#include "src/transport/cma/transfers.hpp"
#include "src/transport/cma/vm_copy.hpp"
#include "src/transport/transport.hpp"

namespace weft::transport::cma {

enum class SlotPath : std::uint8_t { ByFanOut, Always, Never };

struct CmaOptions {
  SlotPath slot_path = SlotPath::ByFanOut;
  std::uint32_t node_pes = 1;  // if more than cores: targets have no core to copy with
  std::uint32_t cores = 1;
  std::size_t small_bytes_max = 4096;  // always copied by the caller, several at once
  std::function<bool(Pe)> is_dead;     // called rarely; empty: no peer dies
  bool pretend_forbidden = false;      // as if the kernel forbade cross-memory attach
};

[[nodiscard]] Command command_of(const Operation& operation, CommandKind kind, Pe me);

class CmaTransport final : public Transport {
 public:
  CmaTransport(CmaOptions options,
               Pe me,
               const std::vector<std::span<std::byte>>& regions,
               Mailbox own);

  [[nodiscard]] bootstrap::Blob describe() const override;
  // Throws Error if a mailbox cannot be mapped.
  void connect(const std::vector<bootstrap::Blob>& connection_data,
               const std::vector<bool>& reached) override;
  [[nodiscard]] bootstrap::Blob add_region(RegionIndex index, std::span<std::byte> memory) override;
  void connect_region(RegionIndex index, const std::vector<bootstrap::Blob>& region_data) override;
  // After it returns, no peer's command accesses this PE's part any more. Direct copies by peers may still access
  // it until those peers have called it too.
  void remove_region(RegionIndex index) override;

  Status post(const Operation& operation) noexcept override;

  void flush(Pe peer) noexcept override;
  bool progress() noexcept override;
  bool advance() noexcept override;
  bool wait_for_event(std::uint32_t timeout_us) noexcept override;
  // If no thread sleeps now, the next call of wait_for_event returns at once.
  void wake() noexcept override;
  [[nodiscard]] Status peer_status(Pe peer) const noexcept override;

 private:
  struct Peer {
    Pe pe;
    std::int64_t pid = 0;
    Mailbox mailbox;
    RegionTable regions;
    mutable std::uint32_t lost = 0;       // sticky
    mutable std::uint32_t forbidden = 0;  // cross-memory attach is forbidden; sticky
    mutable std::uint32_t has_faulted = 0;
    std::uint64_t next_check_ns = 0;
    std::array<Batch, 2> batches;  // by direction

    [[nodiscard]] Batch& batch(Direction direction) {
      return batches[static_cast<std::size_t>(direction)];
    }
  };

  [[nodiscard]] Peer* find(Pe peer) const {
    return peer.value < peers_.size() ? peers_[peer.value].get() : nullptr;
  }

  // relaxed: sticky; publishes no other data. The same for the next function.
  [[nodiscard]] static bool is_lost(const Peer& peer) {
    return AtomicRef(peer.lost).load(std::memory_order_relaxed) != 0;
  }

  [[nodiscard]] static bool is_forbidden(const Peer& peer) {
    return AtomicRef(peer.forbidden).load(std::memory_order_relaxed) != 0;  // as above
  }

  void enter(Pe pe, const bootstrap::Blob& blob);
  [[nodiscard]] bool is_valid(const Peer& peer, const Operation& operation) const;
  FanOut note_peer(Pe peer);
  [[nodiscard]] bool leaves_copy_to_target(const Operation& operation);
  [[nodiscard]] CopyResult copy_now(const Peer& peer, const Operation& operation) const;
  [[nodiscard]] Status post_copy(Peer& peer, const Operation& operation);
  void lose(const Peer& peer) const;
  void log_fault(const Peer& peer, const Operation& operation) const;
  [[nodiscard]] Status gather(Peer& peer, const Operation& operation);
  // Called under the batch's lock. True if there were items.
  bool issue(Peer& peer, Direction direction);
  void copy_oldest(Peer& peer, Direction direction);
  [[nodiscard]] bool bounce_oldest(Peer& peer, Direction direction);
  [[nodiscard]] Copied copy_batch(Peer& peer, Direction direction) const;
  void flush_peer(Peer& peer);
  bool issue_all();
  Status post_command(Peer& peer, const Operation& operation, CommandKind kind);
  // Called under the send lock: returns Again, or fails the operation because the peer is dead.
  [[nodiscard]] Status again(Peer& peer, const Operation& operation);
  void on_answer(Sent& sent, const Answer& given);
  void fail_sent(Sent& sent);

  void forbid(const Peer& peer) const;
  [[nodiscard]] Status bounce(Peer& peer, const Operation& operation);
  // The next functions are called under the send lock.
  [[nodiscard]] std::optional<std::uint32_t> start_transfer(const Operation& operation,
                                                            std::uint32_t count_max);
  void release_transfer(std::uint32_t index);
  bool send_pieces(Peer& peer, std::uint32_t index);
  [[nodiscard]] bool send_piece(Peer& peer, std::uint32_t index);
  void end_piece(const Sent& piece, bool failed);
  void end_transfer_if_done(std::uint32_t index);
  bool send_rest();

  bool collect();
  bool drain();
  bool fail_lost_peers();
  [[nodiscard]] bool has_news();
  [[nodiscard]] Answer execute(const Command& command, const Peer& sender);
  [[nodiscard]] SlotState copy_for(const Command& command, const Peer& sender);
  [[nodiscard]] SlotState copy_by_attach(const Command& command,
                                         std::byte* here,
                                         const Peer& sender);

  CmaOptions options_;
  Pe me_;
  Mailbox own_;
  RegionTable regions_;
  std::vector<std::span<std::byte>> local_regions_;
  std::vector<std::unique_ptr<Peer>> peers_;  // by PE; null: not reached by cma
  std::uint64_t fan_out_ = FanOut{}.encode();
  mutable std::uint32_t open_batches_ = 0;
  std::mutex send_mutex_;
  StatusBoard<kStatusSlots> board_;
  std::array<Sent, kStatusSlots> sent_{};  // by status slot
  TransferTable transfers_;
  ChunkPool chunks_;
  mutable std::uint32_t open_transfers_ = 0;
  std::uint64_t next_check_ns_ = 0;
  std::uint32_t is_woken_ = 0;
  bool had_batches_ = false;  // at the previous turn of the progress thread, which owns it
  std::mutex region_mutex_;   // guards adding and removing regions
  std::mutex drain_mutex_;
  MpscConsumer<Command, kRingSlots> commands_;
};

}  // namespace weft::transport::cma
