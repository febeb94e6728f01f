// The sender's side of CmaTransport for small copies: they are batched, and issued together.
#include <array>

#include "src/transport/cma/cma_transport.hpp"

namespace weft::transport::cma {
namespace {

void complete_oldest(Batch& batch, std::size_t count, bool failed) {
  for (std::size_t i = 0; i < count; ++i) {
    batch.items()[i].counter->complete(failed);
  }
  batch.drop(count);
}

Operation operation_of(const BatchItem& item, Pe peer, Direction direction) {
  return {.kind = direction == Direction::ToPeer ? OperationKind::Put : OperationKind::Get,
          .peer = peer,
          .remote = item.remote,
          .local = item.local,
          .bytes = item.bytes,
          .update = {},
          .counter = item.counter};
}

}  // namespace

Status CmaTransport::gather(Peer& peer, const Operation& operation) {
  const Direction direction =
      operation.kind == OperationKind::Get ? Direction::FromPeer : Direction::ToPeer;
  Batch& batch = peer.batch(direction);
  const std::lock_guard lock(batch.mutex);
  if (!batch.has_room(operation.bytes)) {
    issue(peer, direction);
  }
  if (!batch.has_room(operation.bytes)) {  // the waiting items go through chunks, which are full
    return Status::Again;
  }
  if (!batch.has_items()) {
    // relaxed: a thread sees its own batches; it sees those of another thread slightly later.
    AtomicRef(open_batches_).fetch_add(1, std::memory_order_relaxed);
  }
  operation.counter->issue();
  batch.add({.remote = operation.remote,
             .local = operation.local,
             .bytes = operation.bytes,
             .counter = operation.counter});
  return Status::Ok;
}

bool CmaTransport::issue(Peer& peer, Direction direction) {
  Batch& batch = peer.batch(direction);
  if (!batch.has_items()) {
    return false;
  }
  const std::size_t before = batch.items().size();
  while (batch.has_items()) {
    if (is_lost(peer)) {
      complete_oldest(batch, batch.items().size(), true);
    } else if (!is_forbidden(peer)) {
      copy_oldest(peer, direction);
    } else if (!bounce_oldest(peer, direction)) {
      return batch.items().size() < before;
    }
  }
  // relaxed: as in gather.
  AtomicRef(open_batches_).fetch_sub(1, std::memory_order_relaxed);
  return true;
}

// Copies as many items as the kernel accepts. Afterwards fewer items wait, or the peer is lost or forbidden.
void CmaTransport::copy_oldest(Peer& peer, Direction direction) {
  Batch& batch = peer.batch(direction);
  const Copied copied = copy_batch(peer, direction);
  complete_oldest(batch, copied.count, false);
  switch (copied.result) {
    case CopyResult::Done:
      return;
    case CopyResult::Forbidden:
      return forbid(peer);
    case CopyResult::Gone:
      return lose(peer);
    case CopyResult::Fault:
      log_fault(peer, operation_of(batch.items().front(), peer.pe, direction));
      complete_oldest(batch, 1, true);
  }
}

bool CmaTransport::bounce_oldest(Peer& peer, Direction direction) {
  Batch& batch = peer.batch(direction);
  const std::lock_guard lock(send_mutex_);
  if (!start_transfer(operation_of(batch.items().front(), peer.pe, direction),
                      TransferTable::kNewMax)) {
    return false;
  }
  batch.drop(1);  // progress will send it
  return true;
}

Copied CmaTransport::copy_batch(Peer& peer, Direction direction) const {
  std::array<iovec, Batch::kItemsMax> local;
  std::array<iovec, Batch::kItemsMax> remote;
  std::size_t count = 0;
  for (const BatchItem& item : peer.batch(direction).items()) {
    local[count] = {.iov_base = item.local, .iov_len = item.bytes};
    remote[count] = {
        .iov_base = reinterpret_cast<void*>(peer.regions.address_of(item.remote, item.bytes)),
        .iov_len = item.bytes};
    ++count;
  }
  return copy_pieces({.pid = peer.pid, .direction = direction}, std::span(local.data(), count),
                     std::span(remote.data(), count));
}

void CmaTransport::flush_peer(Peer& peer) {
  for (const Direction direction : {Direction::ToPeer, Direction::FromPeer}) {
    if (peer.batch(direction).has_items()) {
      const std::lock_guard lock(peer.batch(direction).mutex);
      issue(peer, direction);
    }
  }
}

void CmaTransport::flush(Pe peer) noexcept {
  if (Peer* known = find(peer); known != nullptr) {
    flush_peer(*known);
  }
}

bool CmaTransport::issue_all() {
  // relaxed: as in gather.
  if (AtomicRef(open_batches_).load(std::memory_order_relaxed) == 0) {
    return false;
  }
  bool moved = false;
  for (const std::unique_ptr<Peer>& peer : peers_) {
    for (const Direction direction : {Direction::ToPeer, Direction::FromPeer}) {
      if (peer == nullptr || !peer->batch(direction).has_items()) {
        continue;
      }
      const std::unique_lock lock(peer->batch(direction).mutex, std::try_to_lock);
      moved = (lock.owns_lock() && issue(*peer, direction)) || moved;
    }
  }
  return moved;
}

}  // namespace weft::transport::cma
