// The Transport to PEs of the same node whose memory cannot be mapped. Copies are done by the caller
// through cross-memory attach, or left to the target where the sender fans out; atomics and signals
// are always executed by the target, exactly once.
//
// Threads: any. One lock guards what this PE has sent as commands, another the draining of its ring;
// small copies are gathered under a lock of each peer.
#pragma once

#include <array>
#include <functional>
#include <memory>
#include <mutex>
#include <vector>

#include "src/bootstrap/bootstrap.hpp"
#include "src/transport/cma/batch.hpp"
#include "src/transport/cma/fan_out.hpp"
#include "src/transport/cma/mailbox.hpp"
#include "src/transport/cma/regions.hpp"
#include "src/transport/cma/vm_copy.hpp"
#include "src/transport/transport.hpp"

namespace weft::transport::cma {

enum class SlotPath : std::uint8_t { ByFanOut, Always, Never };

struct CmaOptions {
  SlotPath slot_path = SlotPath::ByFanOut;
  std::uint32_t node_pes = 1;  // more than cores: targets have no core to copy with
  std::uint32_t cores = 1;
  std::size_t small_bytes_max = 4096;  // copied by the caller in any case, several at once
  std::function<bool(Pe)> is_dead;     // asked rarely; empty: nobody dies
};

struct LocalRegion {
  std::byte* base = nullptr;
  std::uint64_t bytes = 0;
};

class CmaTransport final : public Transport {
 public:
  CmaTransport(CmaOptions options, Pe me, const std::vector<LocalRegion>& regions, Mailbox own);

  // What peers need to reach this PE.
  [[nodiscard]] bootstrap::Blob describe() const;

  // Enters the peers that are reached this way; `blobs` is indexed by PE. Throws Error if a mailbox
  // cannot be mapped, or if the kernel forbids to read a peer's memory.
  void connect(const std::vector<bootstrap::Blob>& blobs, const std::vector<bool>& is_mine);

  Status post(const Operation& operation) noexcept override;

  void flush(Pe peer) noexcept override;
  bool progress() noexcept override;
  bool wait_for_event(std::uint32_t timeout_us) noexcept override;
  [[nodiscard]] Status peer_status(Pe peer) const noexcept override;

 private:
  struct Peer {
    std::int64_t pid = 0;
    Mailbox mailbox;
    RegionTable regions;
    mutable std::uint32_t lost = 0;
    std::array<Batch, 2> batches;  // by direction

    [[nodiscard]] Batch& batch(Direction direction) {
      return batches[static_cast<std::size_t>(direction)];
    }
  };

  [[nodiscard]] Peer* find(Pe peer) const {
    return peer.value < peers_.size() ? peers_[peer.value].get() : nullptr;
  }

  [[nodiscard]] bool is_lost(const Peer& peer) const;
  [[nodiscard]] bool is_valid(const Peer& peer, const Operation& operation) const;
  [[nodiscard]] bool leaves_copy_to_target(const Operation& operation);
  [[nodiscard]] bool copy_now(const Peer& peer, const Operation& operation) const;
  [[nodiscard]] Status gather(Peer& peer, const Operation& operation);
  // Under the batch's lock. True if there was something.
  bool issue(Peer& peer, Direction direction);
  [[nodiscard]] Copied copy_batch(Peer& peer, Direction direction) const;
  void flush_peer(Peer& peer);
  bool issue_all();
  Status post_command(Peer& peer, const Operation& operation, CommandKind kind);
  bool collect();
  bool drain();
  bool fail_lost_peers();
  [[nodiscard]] Answer execute(const Command& command, const Peer& sender);
  [[nodiscard]] SlotState copy_for(const Command& command, const Peer& sender);

  CmaOptions options_;
  Pe me_;
  Mailbox own_;
  RegionTable regions_;
  std::vector<LocalRegion> local_regions_;
  std::vector<std::unique_ptr<Peer>> peers_;  // by PE; null: not reached this way
  std::uint64_t fan_out_ = FanOut{}.encode();
  mutable std::uint32_t open_batches_ = 0;
  std::mutex send_mutex_;
  StatusBoard<kStatusSlots> board_;
  std::array<Operation, kStatusSlots> sent_{};  // by status slot
  std::array<bool, kStatusSlots> in_flight_{};
  std::uint64_t next_check_ns_ = 0;
  std::mutex drain_mutex_;
  RingConsumer<Command, kRingSlots> commands_;
};

}  // namespace weft::transport::cma
