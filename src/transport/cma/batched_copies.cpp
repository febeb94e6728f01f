#include "src/transport/cma/batched_copies.hpp"

#include <array>

namespace weft::transport::cma {
namespace {

void complete_oldest(CopyBatch& batch, std::size_t count, bool failed) {
  for (std::size_t i = 0; i < count; ++i) {
    batch.items()[i].counter->complete(failed);
  }
  batch.drop(count);
}

Operation operation_of(const BatchItem& item, Pe peer, CmaDirection direction) {
  return {.kind = direction == CmaDirection::ToPeer ? OperationKind::Put : OperationKind::Get,
          .peer = peer,
          .remote = item.remote,
          .local = item.local,
          .bytes = item.bytes,
          .update = {},
          .counter = item.counter};
}

// Copies the items of the batch.
Copied copy_batch(NodePeer& peer, CmaDirection direction) {
  std::array<iovec, CopyBatch::kItemsMax> local;
  std::array<iovec, CopyBatch::kItemsMax> remote;
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

}  // namespace

Status BatchedCopies::add(NodePeer& peer, const Operation& operation) {
  const CmaDirection direction =
      operation.kind == OperationKind::Get ? CmaDirection::FromPeer : CmaDirection::ToPeer;
  CopyBatch& batch = peer.batch(direction);
  const std::lock_guard lock(batch.mutex);
  if (!batch.has_room(operation.bytes)) {
    issue(peer, direction);
  }
  if (!batch.has_room(operation.bytes)) {  // the waiting items go through chunks, which are full
    return Status::Again;
  }
  if (!batch.has_items()) {
    // relaxed: as in has_items.
    AtomicRef(open_count_).fetch_add(1, std::memory_order_relaxed);
  }
  operation.counter->issue();
  batch.add({.remote = operation.remote,
             .local = operation.local,
             .bytes = operation.bytes,
             .counter = operation.counter});
  return Status::Ok;
}

bool BatchedCopies::issue(NodePeer& peer, CmaDirection direction) {
  CopyBatch& batch = peer.batch(direction);
  if (!batch.has_items()) {
    return false;
  }
  const std::size_t before = batch.items().size();
  while (batch.has_items()) {
    if (peer.is_lost()) {
      complete_oldest(batch, batch.items().size(), true);
    } else if (!peer.is_forbidden()) {
      copy_oldest(peer, direction);
    } else if (!bounce_oldest(peer, direction)) {
      return batch.items().size() < before;
    }
  }
  // relaxed: as in add.
  AtomicRef(open_count_).fetch_sub(1, std::memory_order_relaxed);
  return true;
}

// Copies as many items as the kernel accepts. Afterwards fewer items wait, or the peer is lost or
// forbidden.
void BatchedCopies::copy_oldest(NodePeer& peer, CmaDirection direction) {
  CopyBatch& batch = peer.batch(direction);
  const Copied copied = copy_batch(peer, direction);
  complete_oldest(batch, copied.count, false);
  switch (copied.result) {
    case CopyResult::Done:
      return;
    case CopyResult::Forbidden:
      return peer.forbid();
    case CopyResult::Gone:
      return peer.lose();
    case CopyResult::Fault:
      peer.log_fault(operation_of(batch.items().front(), peer.pe, direction));
      complete_oldest(batch, 1, true);
  }
}

bool BatchedCopies::bounce_oldest(NodePeer& peer, CmaDirection direction) {
  CopyBatch& batch = peer.batch(direction);
  if (!sender_.bounce_later(operation_of(batch.items().front(), peer.pe, direction))) {
    return false;
  }
  batch.drop(1);  // progress will send it
  return true;
}

void BatchedCopies::flush(NodePeer& peer) {
  for (const CmaDirection direction : {CmaDirection::ToPeer, CmaDirection::FromPeer}) {
    if (peer.batch(direction).has_items()) {
      const std::lock_guard lock(peer.batch(direction).mutex);
      issue(peer, direction);
    }
  }
}

bool BatchedCopies::flush_all() {
  if (!has_items()) {
    return false;
  }
  bool moved = false;
  for (const std::unique_ptr<NodePeer>& peer : peers_) {
    for (const CmaDirection direction : {CmaDirection::ToPeer, CmaDirection::FromPeer}) {
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
