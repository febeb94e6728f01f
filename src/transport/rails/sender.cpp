#include "src/transport/rails/sender.hpp"

#include <cstring>

#include "src/base/error.hpp"

namespace weft::transport::rails {
namespace {

constexpr std::size_t kQueuedOperationsMax = 1024;
// Sequences the target may not have applied yet; the rest of its window is slack for what is late.
constexpr std::uint32_t kUnackedMax = SequenceWindow::kSpan - 512;
constexpr std::uint32_t kUnackedFlush = SequenceWindow::kSpan / 2;

bool is_sequenced(OperationKind kind) {
  return kind == OperationKind::PutSignal || kind == OperationKind::Atomic;
}

Direction direction_of(const Operation& operation) {
  return operation.kind == OperationKind::Get ? Direction::Read : Direction::Write;
}

}  // namespace

OperationRecord* Sender::make_record(const Operation& operation) {
  OperationRecord* record = state_.operations.take();
  *record = {};
  record->operation = operation;
  // Atomics travel in messages of ours: they do not turn the wheel of the counting policies.
  record->number = state_.operation_count;
  state_.operation_count += operation.kind == OperationKind::Atomic ? 0 : 1;
  record->parts = 1;  // being planned
  operation.counter->issue();
  return record;
}

Status Sender::accept(Peer& peer, const Operation& operation) {
  if (peer.status != Status::Ok) {
    return peer.status;
  }
  if (peer.queue.size() >= kQueuedOperationsMax || outbox_.is_congested(peer)) {
    return Status::Again;
  }
  if (is_sequenced(operation.kind)) {
    const std::uint32_t unacked = peer.next_sequence - peer.acked_floor;
    if (unacked >= kUnackedFlush) {
      request_flush(peer);
    }
    if (unacked >= kUnackedMax) {
      return Status::Again;
    }
  }
  OperationRecord& record = *make_record(operation);
  if (is_sequenced(operation.kind)) {
    return accept_sequenced(peer, record);
  }
  if (peer.queue.empty() && dispatch_one(peer, record)) {
    return Status::Ok;
  }
  if (operation.copy_source) {
    copy_source(record);
  }
  peer.queue.push_back(&record);
  state_.activate(peer);
  return Status::Ok;
}

// Atomics and small put_signals are one frame; larger put_signals are pieces, then a frame.
Status Sender::accept_sequenced(Peer& peer, OperationRecord& record) {
  const Operation& operation = record.operation;
  record.sequenced = true;
  record.sequence = peer.next_sequence++;
  record.wants_reply = operation.kind == OperationKind::Atomic && operation.result != nullptr;
  ++record.parts;  // the acknowledgement, or the reply
  peer.unacked.push_back(&record);
  if (operation.kind == OperationKind::Atomic) {
    Frame frame = frame_of(record, FrameKind::Atomic);
    frame.token = record.wants_reply ? reinterpret_cast<std::uint64_t>(&record) : 0;
    outbox_.append(peer, frame);
    finish_part(record);
  } else if (operation.bytes == 0 ||
             (operation.bytes <= state_.options.eager_bytes_max && !operation.on_device)) {
    Frame frame =
        frame_of(record, operation.bytes == 0 ? FrameKind::Signal : FrameKind::EagerSignal);
    frame.count = static_cast<std::uint32_t>(operation.bytes);
    frame.data_region = operation.remote.region.value;
    frame.data_offset = operation.remote.offset.value;
    outbox_.append(peer, frame, {static_cast<const std::byte*>(operation.local), operation.bytes});
    finish_part(record);
  } else if (!peer.queue.empty() || !dispatch_one(peer, record)) {
    if (operation.copy_source) {
      copy_source(record);
    }
    peer.queue.push_back(&record);
    state_.activate(peer);
  }
  outbox_.post(peer, false);
  return Status::Ok;
}

Frame Sender::frame_of(const OperationRecord& record, FrameKind kind) const {
  const AtomicUpdate& update = record.operation.update;
  return {.kind = kind,
          .code = static_cast<std::uint8_t>(update.code),
          .element_bytes = update.element_bytes,
          .region = static_cast<std::uint8_t>(update.word.region.value),
          .sequence = record.sequence,
          .offset = update.word.offset.value,
          .operand = update.operand,
          .compare = update.compare};
}

// The caller may reuse its buffer while this operation waits or its pieces are on their way.
void Sender::copy_source(OperationRecord& record) {
  if (record.copy != nullptr) {
    return;
  }
  record.copy = state_.copies.take();
  const auto* source = static_cast<const std::byte*>(record.operation.local);
  record.copy->assign(source, source + record.operation.bytes);
  record.operation.local = record.copy->data();
}

bool Sender::dispatch(Peer& peer) {
  bool moved = dispatch_retries(peer);
  while (!peer.queue.empty()) {
    OperationRecord& record = *peer.queue.front();
    const std::uint64_t before = record.planned_bytes;
    if (!dispatch_one(peer, record)) {
      return moved || record.planned_bytes != before;
    }
    peer.queue.pop_front();
    moved = true;
  }
  return moved;
}

bool Sender::dispatch_retries(Peer& peer) {
  bool moved = false;
  while (!peer.retry.empty()) {
    PieceRecord& piece = *peer.retry.front();
    const Direction direction = direction_of(piece.operation->operation);
    // A retried piece goes out whole: small for the planner, so that no window holds it back.
    auto where = links_.choose(peer, direction, {.total = 1}, piece.operation->number);
    if (!where) {
      break;
    }
    where->offset = piece.offset;
    where->bytes = piece.bytes;
    if (post_piece(peer, piece, *where)) {
      peer.retry.pop_front();
      moved = true;
    }
  }
  return moved;
}

bool Sender::dispatch_one(Peer& peer, OperationRecord& record) {
  const Operation& operation = record.operation;
  while (record.planned_bytes < operation.bytes) {
    const auto where =
        links_.choose(peer, direction_of(operation),
                      {.total = operation.bytes, .offset = record.planned_bytes}, record.number);
    if (!where) {
      return false;
    }
    // A source that is injected is free at once; any other must outlive the post.
    const fabric::Rail& rail = *state_.rails[where->local.value].rail;
    if (operation.copy_source && where->bytes > rail.limits().inject_bytes) {
      copy_source(record);
    }
    PieceRecord* piece = state_.pieces.take();
    piece->operation = &record;
    piece->with_immediate =
        operation.kind == OperationKind::PutSignal && rail.limits().has_immediate;
    if (!post_piece(peer, *piece, *where)) {
      state_.pieces.give(piece);
      continue;  // that rail is full or down now; the planner knows
    }
    record.planned_bytes += where->bytes;
    ++record.parts;
    record.pieces += piece->with_immediate ? 1 : 0;
    record.forced =
        record.forced || (operation.kind == OperationKind::PutSignal && !piece->with_immediate);
  }
  on_planned(peer, record);
  return true;
}

bool Sender::post_piece(Peer& peer, PieceRecord& piece, const Piece& where) {
  const Operation& operation = piece.operation->operation;
  RailLink& link = peer.link(where.local, where.remote);
  LocalRail& local = state_.rails[link.local.value];
  const fabric::RegionKey& region = link.regions[operation.remote.region.value];
  std::byte* memory = static_cast<std::byte*>(operation.local) + where.offset;
  const fabric::LocalMemory here{memory, where.bytes, operation.on_device};
  const fabric::RemoteMemory there{
      link.address, region.base + operation.remote.offset.value + where.offset, region.key};
  fabric::PostResult result = fabric::PostResult::Failed;
  if (operation.kind == OperationKind::Get) {
    result = local.rail->post_read(here, there, &piece);
  } else {
    const auto immediate =
        piece.with_immediate ? std::optional(encode_immediate(state_.me, piece.operation->sequence))
                             : std::nullopt;
    result = local.rail->post_write(here, there, immediate, &piece);
  }
  switch (result) {
    case fabric::PostResult::Posted:
      piece.offset = where.offset;
      links_.on_posted(peer, link, direction_of(operation), where.bytes, piece);
      return true;
    case fabric::PostResult::Full:
      Links::on_full(local);
      return false;
    case fabric::PostResult::Failed:
      links_.on_refused(peer, link);
      return false;
  }
  return false;
}

// Every byte is with a rail. The signal may overtake them: it names how many pieces belong to it.
void Sender::on_planned(Peer& peer, OperationRecord& record) {
  record.planned = true;
  if (record.operation.kind == OperationKind::PutSignal && !record.forced) {
    Frame frame = frame_of(record, FrameKind::Signal);
    frame.count = record.pieces;
    outbox_.append(peer, frame);
  }
  finish_part(record);
}

void Sender::request_flush(Peer& peer) {
  if (peer.acked_floor == peer.next_sequence || peer.flush_asked == peer.next_sequence) {
    return;
  }
  peer.flush_asked = peer.next_sequence;
  outbox_.append(peer, {.kind = FrameKind::Flush, .sequence = peer.next_sequence});
}

void Sender::on_piece_delivered(PieceRecord* piece) {
  OperationRecord& record = *piece->operation;
  state_.pieces.give(piece);
  finish_part(record);
}

void Sender::drop_piece(PieceRecord* piece) {
  piece->operation->failed = true;
  on_piece_delivered(piece);
}

// `parts` is at 1 when only the acknowledgement is missing: all pieces are known to be delivered.
void Sender::finish_part(OperationRecord& record) {
  --record.parts;
  if (record.forced && record.planned && record.parts == 1 && !record.failed) {
    record.forced = false;
    outbox_.append(*state_.peers[record.operation.peer.value], frame_of(record, FrameKind::Force));
  }
  if (record.parts != 0) {
    return;
  }
  record.operation.counter->complete(record.failed);
  if (record.copy != nullptr) {
    state_.copies.give(record.copy);
  }
  state_.operations.give(&record);
}

void Sender::on_acked(Peer& peer, std::uint32_t floor) {
  // Floors may arrive out of order: only growth counts.
  while (static_cast<std::int32_t>(floor - peer.acked_floor) > 0 && !peer.unacked.empty()) {
    OperationRecord* record = peer.unacked.front();
    peer.unacked.pop_front();
    ++peer.acked_floor;
    if (record != nullptr && record->wants_reply) {
      peer.late_replies.push_back(record);
    } else if (record != nullptr) {
      finish_part(*record);
    }
  }
}

// The token is the record's address: a reply is processed once, while the record waits for it.
void Sender::on_reply(Peer& peer, std::uint64_t token, std::uint64_t value) {
  auto* record = reinterpret_cast<OperationRecord*>(token);
  const std::uint32_t index = record->sequence - peer.acked_floor;
  if (index < peer.unacked.size()) {
    peer.unacked[index] = nullptr;
  } else {
    std::erase(peer.late_replies, record);
  }
  *record->operation.result = value;
  finish_part(*record);
}

// Pieces that are still with a rail fail there, and come here through Recovery.
void Sender::fail_all(Peer& peer) {
  peer.late_replies.insert(peer.late_replies.end(), peer.unacked.begin(), peer.unacked.end());
  peer.unacked.clear();
  for (OperationRecord* record : peer.late_replies) {
    if (record != nullptr) {
      record->failed = true;
      finish_part(*record);
    }
  }
  peer.late_replies.clear();
  for (OperationRecord* record : peer.queue) {
    record->failed = true;
    record->planned_bytes = record->operation.bytes;
    finish_part(*record);
  }
  peer.queue.clear();
  for (PieceRecord* piece : peer.retry) {
    drop_piece(piece);
  }
  peer.retry.clear();
}

}  // namespace weft::transport::rails
