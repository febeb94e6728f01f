// The Transport to PEs of the same node whose memory cannot be mapped. The caller copies through
// cross-memory attach, or leaves the copy to the target if the sender fans out. The target always
// executes atomics and signals, exactly once.
//
// Threads: any. One lock guards the commands that this PE has sent (command_sender.hpp), another
// the draining of its ring (command_server.hpp). Small copies are batched under a lock per peer
// (batched_copies.hpp).
#pragma once

#include <cstddef>
#include <cstdint>
#include <functional>
#include <mutex>
#include <span>
#include <vector>

#include "src/bootstrap/bootstrap.hpp"
#include "src/transport/cma/batched_copies.hpp"
#include "src/transport/cma/command_sender.hpp"
#include "src/transport/cma/command_server.hpp"
#include "src/transport/cma/fan_out.hpp"
#include "src/transport/cma/mailbox.hpp"
#include "src/transport/cma/peer.hpp"
#include "src/transport/cma/regions.hpp"
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
  // After it returns, no peer's command accesses this PE's part any more. Direct copies by peers
  // may still access it until those peers have called it too.
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
  void enter(Pe pe, const bootstrap::Blob& blob);
  FanOut note_peer(Pe peer);
  [[nodiscard]] bool leaves_copy_to_target(const Operation& operation);
  [[nodiscard]] CopyResult copy_now(const NodePeer& peer, const Operation& operation) const;
  [[nodiscard]] Status post_copy(NodePeer& peer, const Operation& operation);
  [[nodiscard]] bool has_news();

  CmaOptions options_;
  Mailbox own_;
  RegionTable regions_;
  std::vector<std::span<std::byte>> local_regions_;
  NodePeers peers_;
  CommandSender sender_;
  BatchedCopies batches_;
  CommandServer server_;
  std::uint64_t fan_out_ = FanOut{}.encode();
  std::uint32_t is_woken_ = 0;
  bool had_batches_ = false;  // at the previous turn of the progress thread, which owns it
  std::mutex region_mutex_;   // guards adding and removing regions
};

}  // namespace weft::transport::cma
