#include "src/transport/cma/cma_transport.hpp"

#include <algorithm>
#include <utility>

#include "src/base/error.hpp"

namespace weft::transport::cma {
namespace {

// The longest time that batched operations wait for their caller's flush before the progress thread
// sends them.
constexpr std::uint32_t kBatchLookUs = 1000;
// A peer that frees room in its ring rings no bell, so waiters poll for it.
constexpr std::uint32_t kRoomLookUs = 1000;

Status complete_now(const Operation& operation, bool failed) {
  operation.counter->issue();
  operation.counter->complete(failed);
  return Status::Ok;
}

// PutSignal is not batched: its signal would be delayed as well.
bool is_gathered(const Operation& operation, SlotPath slot_path, std::size_t bytes_max) {
  const bool is_put = operation.kind == OperationKind::Put && !operation.copy_source;
  return (is_put || operation.kind == OperationKind::Get) && operation.bytes <= bytes_max &&
         slot_path != SlotPath::Always;
}

}  // namespace

CmaTransport::CmaTransport(CmaOptions options,
                           Pe me,
                           const std::vector<std::span<std::byte>>& regions,
                           Mailbox own)
    : options_(std::move(options)),
      own_(std::move(own)),
      local_regions_(regions),
      sender_(me, own_, peers_, options_.is_dead),
      batches_(peers_, sender_),
      server_(own_, regions_, peers_, options_.is_dead) {
  for (std::uint32_t i = 0; i < regions.size(); ++i) {
    WEFT_CHECK(
        regions_.set(RegionIndex(i), {.base = reinterpret_cast<std::uint64_t>(regions[i].data()),
                                      .bytes = regions[i].size()}),
        "region {} of {}", i, regions.size());
  }
}

FanOut CmaTransport::note_peer(Pe peer) {
  const AtomicRef word(fan_out_);
  // relaxed: a hint; an update that another thread overwrites does no harm.
  const FanOut now = FanOut::decode(word.load(std::memory_order_relaxed)).after(peer);
  word.store(now.encode(), std::memory_order_relaxed);  // as above
  return now;
}

bool CmaTransport::leaves_copy_to_target(const Operation& operation) {
  const FanOut now = note_peer(operation.peer);
  if (operation.copy_source || options_.slot_path == SlotPath::Never) {
    return false;
  }
  if (options_.slot_path == SlotPath::Always) {
    return true;
  }
  return options_.node_pes <= options_.cores && operation.bytes > options_.small_bytes_max &&
         now.is_wide();
}

CopyResult CmaTransport::copy_now(const NodePeer& peer, const Operation& operation) const {
  const bool reads = operation.kind == OperationKind::Get;
  return copy_piece(
      {.pid = peer.pid, .direction = reads ? CmaDirection::FromPeer : CmaDirection::ToPeer},
      operation.local, peer.regions.address_of(operation.remote, operation.bytes), operation.bytes);
}

Status CmaTransport::post(const Operation& operation) noexcept {
  NodePeer* peer = find(peers_, operation.peer);
  if (peer == nullptr || !peer->has(operation)) {
    return Status::InvalidArgument;
  }
  if (peer->is_lost()) {
    return complete_now(operation, true);
  }
  const bool has_copy = operation.kind != OperationKind::Atomic && operation.bytes > 0;
  if (!has_copy && (operation.kind == OperationKind::Put || operation.kind == OperationKind::Get)) {
    return complete_now(operation, false);
  }
  if (has_copy && !peer->is_forbidden() &&
      is_gathered(operation, options_.slot_path, options_.small_bytes_max)) {
    note_peer(operation.peer);
    return batches_.add(*peer, operation);
  }
  batches_.flush(*peer);
  return has_copy ? post_copy(*peer, operation)
                  : sender_.post(*peer, operation, NodeCommandKind::Update);
}

Status CmaTransport::post_copy(NodePeer& peer, const Operation& operation) {
  if (peer.is_forbidden()) {
    return sender_.bounce(peer, operation);
  }
  if (leaves_copy_to_target(operation)) {
    const bool reads = operation.kind == OperationKind::Get;
    return sender_.post(peer, operation, reads ? NodeCommandKind::Read : NodeCommandKind::Write);
  }
  switch (copy_now(peer, operation)) {
    case CopyResult::Done:  // Again repeats the copy, which is idempotent
      return operation.kind == OperationKind::PutSignal
                 ? sender_.post(peer, operation, NodeCommandKind::Update)
                 : complete_now(operation, false);
    case CopyResult::Forbidden:
      peer.forbid();
      return sender_.bounce(peer, operation);
    case CopyResult::Gone:
      peer.lose();
      return complete_now(operation, true);
    case CopyResult::Fault:
      break;
  }
  peer.log_fault(operation);
  return Status::Internal;
}

void CmaTransport::flush(Pe peer) noexcept {
  if (NodePeer* known = find(peers_, peer); known != nullptr) {
    batches_.flush(*known);
  }
}

bool CmaTransport::progress() noexcept {
  const bool drained = server_.drain();
  const bool issued = batches_.flush_all();
  const bool collected = sender_.collect();
  return sender_.fail_lost_peers() || drained || issued || collected;
}

// Leaves batches to their callers; sends only those that were already open at the previous call.
bool CmaTransport::advance() noexcept {
  const bool drained = server_.drain();
  const bool collected = sender_.collect();
  const bool moved = sender_.fail_lost_peers() || drained || collected;
  const bool has_batches = batches_.has_items();
  const bool issued = has_batches && had_batches_ && !moved && batches_.flush_all();
  had_batches_ = has_batches && !issued;
  return moved || issued;
}

bool CmaTransport::wait_for_event(std::uint32_t timeout_us) noexcept {
  if (sender_.has_transfers()) {
    timeout_us = std::min(timeout_us, kRoomLookUs);
  }
  if (batches_.has_items()) {
    timeout_us = std::min(timeout_us, kBatchLookUs);
  }
  return sleep_at(own_.memory().bell, timeout_us, [this] { return has_news(); });
}

bool CmaTransport::has_news() {
  // SYNC cma-wake: pairs with wake.
  if (AtomicRef(is_woken_).exchange(0, std::memory_order_acquire) != 0) {
    return true;
  }
  return server_.has_news() || sender_.has_news();
}

void CmaTransport::wake() noexcept {
  // SYNC cma-wake: pairs with has_news.
  AtomicRef(is_woken_).store(1, std::memory_order_release);
  ring(own_.memory().bell);
}

Status CmaTransport::peer_status(Pe peer) const noexcept {
  const NodePeer* known = find(peers_, peer);
  return known != nullptr && known->is_lost() ? Status::PeerLost : Status::Ok;
}

}  // namespace weft::transport::cma
