// The sender's side of CmaTransport if the kernel forbids cross-memory attach: operations are copied in pieces
// through chunks of this PE's mailbox (bounce buffers), and the target copies them out. The target's ring keeps
// the order, so the last piece carries the signal.
//
// All functions here hold the send lock, except forbid() and bounce().
#include <algorithm>
#include <cstring>

#include "src/base/log.hpp"
#include "src/transport/cma/cma_transport.hpp"

namespace weft::transport::cma {

void CmaTransport::forbid(const Peer& peer) const {
  static std::uint32_t has_said = 0;
  // relaxed: sticky; publishes no other data. The same holds for the flag below.
  AtomicRef(peer.forbidden).store(1, std::memory_order_relaxed);
  if (AtomicRef(has_said).exchange(1, std::memory_order_relaxed) == 0) {
    log::warn(
        "the kernel does not let this process copy from and to PE {} (process {}): copies go "
        "through "
        "shared memory, which is slower; allow process_vm_readv with sysctl "
        "kernel.yama.ptrace_scope=0, in a container with --cap-add SYS_PTRACE or a seccomp profile "
        "that permits it",
        peer.pe.value, peer.pid);
  }
}

Status CmaTransport::bounce(Peer& peer, const Operation& operation) {
  if (operation.copy_source && operation.bytes > kChunkBytes) {
    return Status::InvalidArgument;
  }
  const std::lock_guard lock(send_mutex_);
  const std::optional<std::uint32_t> index = start_transfer(operation, TransferTable::kNewMax);
  if (!index) {
    return again(peer, operation);
  }
  send_pieces(peer, *index);
  if (operation.copy_source && !transfers_[*index].is_all_sent()) {
    release_transfer(*index);  // its only piece was not sent
    return again(peer, operation);
  }
  operation.counter->issue();
  ring(peer.mailbox.memory().bell);
  return Status::Ok;
}

std::optional<std::uint32_t> CmaTransport::start_transfer(const Operation& operation,
                                                          std::uint32_t count_max) {
  const std::optional<std::uint32_t> index = transfers_.reserve(count_max);
  if (index) {
    transfers_[*index].operation = operation;
    // relaxed: a hint for threads that sleep.
    AtomicRef(open_transfers_).store(transfers_.count(), std::memory_order_relaxed);
  }
  return index;
}

void CmaTransport::release_transfer(std::uint32_t index) {
  transfers_.release(index);
  // relaxed: as above.
  AtomicRef(open_transfers_).store(transfers_.count(), std::memory_order_relaxed);
}

bool CmaTransport::send_pieces(Peer& peer, std::uint32_t index) {
  bool moved = false;
  while (!transfers_[index].is_all_sent() &&
         transfers_[index].open_pieces < Transfer::kOpenPiecesMax && send_piece(peer, index)) {
    moved = true;
  }
  return moved;
}

bool CmaTransport::send_piece(Peer& peer, std::uint32_t index) {
  Transfer& transfer = transfers_[index];
  const Operation& operation = transfer.operation;
  const std::optional<std::uint16_t> chunk = chunks_.reserve();
  const std::optional<std::uint32_t> slot = chunk ? board_.reserve() : std::nullopt;
  if (!slot) {
    if (chunk) {
      chunks_.release(*chunk);
    }
    return false;
  }
  const bool reads = operation.kind == OperationKind::Get;
  auto* here = static_cast<std::byte*>(operation.local) + transfer.sent_bytes;
  const std::size_t bytes = std::min(kChunkBytes, operation.bytes - transfer.sent_bytes);
  if (!reads) {
    std::memcpy(own_.memory().chunks[*chunk].data(), here, bytes);
  }
  const bool is_last = transfer.sent_bytes + bytes == operation.bytes;
  Command command =
      command_of(operation, reads ? CommandKind::ReadChunk : CommandKind::WriteChunk, me_);
  command.status_slot = static_cast<std::uint16_t>(*slot);
  command.chunk = *chunk;
  command.offset += transfer.sent_bytes;
  command.bytes = bytes;
  command.has_update = is_last ? command.has_update : std::uint8_t{0};
  if (!push(peer.mailbox.memory().ring, me_.value, command)) {
    board_.release(*slot);
    chunks_.release(*chunk);
    return false;
  }
  sent_[*slot] = {.operation = {.peer = operation.peer, .remote = {}, .update = {}},
                  .transfer = index,
                  .chunk = *chunk,
                  .dest = reads ? here : nullptr,
                  .bytes = bytes,
                  .is_open = true};
  transfer.sent_bytes += bytes;
  ++transfer.open_pieces;
  return true;
}

void CmaTransport::end_piece(const Sent& piece, bool failed) {
  if (piece.dest != nullptr && !failed) {
    std::memcpy(piece.dest, own_.memory().chunks[piece.chunk].data(), piece.bytes);
  }
  chunks_.release(piece.chunk);
  Transfer& transfer = transfers_[*piece.transfer];
  --transfer.open_pieces;
  transfer.has_failed = transfer.has_failed || failed;
  end_transfer_if_done(*piece.transfer);
}

void CmaTransport::end_transfer_if_done(std::uint32_t index) {
  const Transfer& transfer = transfers_[index];
  if (transfer.open_pieces == 0 && transfer.is_all_sent()) {
    OperationCounter* counter = transfer.operation.counter;
    const bool failed = transfer.has_failed;
    release_transfer(index);
    counter->complete(failed);
  }
}

bool CmaTransport::send_rest() {
  bool moved = false;
  for (std::uint32_t i = 0; transfers_.count() > 0 && i < TransferTable::kTransfersMax; ++i) {
    if (transfers_[i].is_used) {
      Peer& peer = *find(transfers_[i].operation.peer);
      if (send_pieces(peer, i)) {
        ring(peer.mailbox.memory().bell);
        moved = true;
      }
    }
  }
  return moved;
}

}  // namespace weft::transport::cma
