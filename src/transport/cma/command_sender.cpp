#include "src/transport/cma/command_sender.hpp"

#include <algorithm>
#include <cstring>

#include "src/base/clock.hpp"
#include "src/base/error.hpp"

namespace weft::transport::cma {
namespace {

// Asking whether a process is alive is a system call, so peers are checked only this often.
constexpr std::uint64_t kDeathCheckNs = 10'000'000;

NodeCommand command_of(const Operation& operation, NodeCommandKind kind, Pe me) {
  return {
      .sender = me.value,
      .status_slot = 0,
      .chunk = 0,
      .kind = kind,
      .has_update = operation.kind == OperationKind::PutSignal ? std::uint8_t{1} : std::uint8_t{0},
      .code = operation.update.code,
      .element_bytes = operation.update.element_bytes,
      .region = operation.remote.region.value,
      .word_region = operation.update.word.region.value,
      .unused = 0,
      .offset = operation.remote.offset.value,
      .bytes = operation.bytes,
      .local = reinterpret_cast<std::uint64_t>(operation.local),
      .word_offset = operation.update.word.offset.value,
      .operand = operation.update.operand,
      .compare = operation.update.compare};
}

}  // namespace

Status CommandSender::post(NodePeer& peer, const Operation& operation, NodeCommandKind kind) {
  const std::lock_guard lock(mutex_);
  const std::optional<std::uint32_t> slot = board_.reserve();
  if (!slot) {
    return again(peer, operation);
  }
  NodeCommand command = command_of(operation, kind, me_);
  command.status_slot = static_cast<std::uint16_t>(*slot);
  if (!push(peer.mailbox.memory().ring, me_.value, command)) {
    board_.release(*slot);
    return again(peer, operation);
  }
  sent_[*slot] = {.operation = operation, .transfer = {}, .is_open = true};
  operation.counter->issue();
  ring(peer.mailbox.memory().bell);
  return Status::Ok;
}

Status CommandSender::again(NodePeer& peer, const Operation& operation) {
  if (is_dead_ && now_ns() >= peer.next_check_ns) {
    peer.next_check_ns = now_ns() + kDeathCheckNs;
    if (is_dead_(peer.pe)) {
      peer.lose();
      operation.counter->issue();
      operation.counter->complete(true);
      return Status::Ok;
    }
  }
  return Status::Again;
}

bool CommandSender::collect() {
  const std::lock_guard lock(mutex_);
  const bool collected = board_.collect(
      [this](std::uint32_t slot, const Answer& given) { on_answer(sent_[slot], given); });
  return send_rest() || collected;
}

void CommandSender::on_answer(Sent& sent, const Answer& given) {
  sent.is_open = false;
  const bool failed = given.state != SlotState::Done;
  if (sent.transfer) {
    return end_piece(sent, failed);
  }
  if (given.state == SlotState::Forbidden) {  // the target could not copy: retry through chunks
    find(peers_, sent.operation.peer)->forbid();
    const auto index = start_transfer(sent.operation, TransferTable::kTransfersMax);
    WEFT_CHECK(index.has_value(), "{} transfers", transfers_.count());
    return;
  }
  if (sent.operation.result != nullptr) {
    *sent.operation.result = given.result;
  }
  sent.operation.counter->complete(failed);
}

bool CommandSender::fail_lost_peers() {
  const std::lock_guard lock(mutex_);
  if (!is_dead_ || now_ns() < next_check_ns_) {
    return false;
  }
  next_check_ns_ = now_ns() + kDeathCheckNs;
  bool moved = false;
  for (std::uint32_t slot = 0; slot < kStatusSlots; ++slot) {
    if (sent_[slot].is_open && is_dead_(sent_[slot].operation.peer)) {
      board_.release(slot);
      fail_sent(sent_[slot]);
      moved = true;
    }
  }
  for (std::uint32_t i = 0; transfers_.count() > 0 && i < TransferTable::kTransfersMax; ++i) {
    if (transfers_[i].is_used && is_dead_(transfers_[i].operation.peer)) {
      find(peers_, transfers_[i].operation.peer)->lose();
      transfers_[i].has_failed = true;
      end_transfer_if_done(i);
      moved = true;
    }
  }
  return moved;
}

void CommandSender::fail_sent(Sent& sent) {
  sent.is_open = false;
  find(peers_, sent.operation.peer)->lose();
  if (sent.transfer) {
    end_piece(sent, true);
  } else {
    sent.operation.counter->complete(true);
  }
}

bool CommandSender::has_news() {
  const std::unique_lock lock(mutex_, std::try_to_lock);
  return !lock.owns_lock() || board_.has_news();
}

// ---- Through chunks.

bool CommandSender::bounce_later(const Operation& operation) {
  const std::lock_guard lock(mutex_);
  return start_transfer(operation, TransferTable::kNewMax).has_value();
}

Status CommandSender::bounce(NodePeer& peer, const Operation& operation) {
  if (operation.copy_source && operation.bytes > kChunkBytes) {
    return Status::InvalidArgument;
  }
  const std::lock_guard lock(mutex_);
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

std::optional<std::uint32_t> CommandSender::start_transfer(const Operation& operation,
                                                           std::uint32_t count_max) {
  const std::optional<std::uint32_t> index = transfers_.reserve(count_max);
  if (index) {
    transfers_[*index].operation = operation;
    // relaxed: a hint for threads that sleep.
    AtomicRef(open_transfers_).store(transfers_.count(), std::memory_order_relaxed);
  }
  return index;
}

void CommandSender::release_transfer(std::uint32_t index) {
  transfers_.release(index);
  // relaxed: as above.
  AtomicRef(open_transfers_).store(transfers_.count(), std::memory_order_relaxed);
}

bool CommandSender::send_pieces(NodePeer& peer, std::uint32_t index) {
  bool moved = false;
  while (!transfers_[index].is_all_sent() &&
         transfers_[index].open_pieces < Transfer::kOpenPiecesMax && send_piece(peer, index)) {
    moved = true;
  }
  return moved;
}

bool CommandSender::send_piece(NodePeer& peer, std::uint32_t index) {
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
  NodeCommand command =
      command_of(operation, reads ? NodeCommandKind::ReadChunk : NodeCommandKind::WriteChunk, me_);
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

void CommandSender::end_piece(const Sent& piece, bool failed) {
  if (piece.dest != nullptr && !failed) {
    std::memcpy(piece.dest, own_.memory().chunks[piece.chunk].data(), piece.bytes);
  }
  chunks_.release(piece.chunk);
  Transfer& transfer = transfers_[*piece.transfer];
  --transfer.open_pieces;
  transfer.has_failed = transfer.has_failed || failed;
  end_transfer_if_done(*piece.transfer);
}

void CommandSender::end_transfer_if_done(std::uint32_t index) {
  const Transfer& transfer = transfers_[index];
  if (transfer.open_pieces == 0 && transfer.is_all_sent()) {
    OperationCounter* counter = transfer.operation.counter;
    const bool failed = transfer.has_failed;
    release_transfer(index);
    counter->complete(failed);
  }
}

bool CommandSender::send_rest() {
  bool moved = false;
  for (std::uint32_t i = 0; transfers_.count() > 0 && i < TransferTable::kTransfersMax; ++i) {
    if (transfers_[i].is_used) {
      NodePeer& peer = *find(peers_, transfers_[i].operation.peer);
      if (send_pieces(peer, i)) {
        ring(peer.mailbox.memory().bell);
        moved = true;
      }
    }
  }
  return moved;
}

}  // namespace weft::transport::cma
