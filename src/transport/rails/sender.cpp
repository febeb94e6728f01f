#include "src/transport/rails/sender.hpp"

#include <algorithm>
#include <cstring>
#include <string_view>

#include <sys/uio.h>
#include <unistd.h>

#include "src/base/error.hpp"
#include "src/base/log.hpp"

namespace weft::transport::rails {
namespace {

constexpr std::size_t kQueuedOperationsMax = 1024;
// The most sequence numbers that are not acknowledged. The rest of the target's window is slack for late arrivals.
constexpr std::uint32_t kUnackedMax = SequenceWindow::kSpan - 512;
// The largest put that is copied instead of registered. The copy takes 1 to 2 us.
constexpr std::size_t kCopiedBytesMax = std::size_t{16} << 10U;
// The largest operation that is copied because its memory cannot be registered.
constexpr std::size_t kRescuedBytesMax = std::size_t{4} << 20U;
constexpr std::uint64_t kRefusedIntervalNs = 1'000'000'000;
constexpr std::uint32_t kUnackedFlush = SequenceWindow::kSpan / 2;

bool is_sequenced(OperationKind kind) {
  return kind == OperationKind::PutSignal || kind == OperationKind::Atomic;
}

// True if the peer has sent the keys of the regions that the operation uses.
bool has_regions(const Peer& peer, const Operation& operation) {
  return (operation.kind == OperationKind::Atomic || peer.has_region(operation.remote.region)) &&
         (!is_sequenced(operation.kind) || peer.has_region(operation.update.word.region));
}

Direction direction_of(const Operation& operation) {
  return operation.kind == OperationKind::Get ? Direction::Read : Direction::Write;
}

}  // namespace

// If the provider requires every source to be registered (FI_MR_LOCAL), a small source outside of the regions is
// copied to registered memory.
bool Sender::is_better_copied(const Operation& operation) const {
  const bool is_small_put =
      (operation.kind == OperationKind::Put || operation.kind == OperationKind::PutSignal) &&
      operation.bytes <= kCopiedBytesMax && !operation.on_device;
  if (!is_small_put) {
    return false;
  }
  const auto* first = static_cast<const std::byte*>(operation.local);
  return std::ranges::none_of(state_.regions, [&](std::span<std::byte> region) {
    return first >= region.data() && first + operation.bytes <= region.data() + region.size();
  });
}

OperationRecord* Sender::make_record(const Operation& operation) {
  OperationRecord* record = state_.operations.take();
  *record = {};
  record->operation = operation;
  if (state_.registers_local && !operation.copy_source) {
    record->operation.copy_source = is_better_copied(operation);
  }
  // Atomics travel in Weft's own messages, so they do not advance the operation counter of the policies.
  record->number = state_.operation_count;
  state_.operation_count += operation.kind == OperationKind::Atomic ? 0 : 1;
  record->parts = 1;  // until it is planned in full
  operation.counter->issue();
  return record;
}

Status Sender::accept(Peer& peer, const Operation& operation) {
  if (peer.status != Status::Ok) {
    return peer.status;
  }
  if (!has_regions(peer, operation)) {
    return Status::InvalidArgument;
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
  begin_pieces(record);
  if (peer.queue.empty() && dispatch_one(peer, record)) {
    return Status::Ok;
  }
  if (record.operation.copy_source) {
    copy_source(record);
  }
  peer.queue.push_back(&record);
  state_.activate(peer);
  return Status::Ok;
}

// An atomic or a small put_signal is one frame. A larger put_signal is pieces, then a frame.
Status Sender::accept_sequenced(Peer& peer, OperationRecord& record) {
  const Operation& operation = record.operation;
  record.sequenced = true;
  record.sequence = peer.next_sequence++;
  record.wants_reply = operation.kind == OperationKind::Atomic && operation.result != nullptr;
  ++record.parts;  // the acknowledgement, or the reply
  peer.unacked.push_back(&record);
  if (operation.kind == OperationKind::Atomic) {
    UpdateFrame frame = frame_of(record, FrameKind::Atomic);
    frame.token = record.wants_reply ? record.token() : 0;
    outbox_.append(peer, frame);
    finish_part(record);
  } else if (operation.bytes == 0 ||
             (operation.bytes <= state_.options.eager_bytes_max && !operation.on_device)) {
    UpdateFrame frame =
        frame_of(record, operation.bytes == 0 ? FrameKind::Signal : FrameKind::EagerSignal);
    frame.count = static_cast<std::uint32_t>(operation.bytes);
    frame.data_region = static_cast<std::uint16_t>(operation.remote.region.value);
    frame.data_offset = operation.remote.offset.value;
    outbox_.append(peer, frame, {static_cast<const std::byte*>(operation.local), operation.bytes});
    finish_part(record);
  } else {
    begin_pieces(record);
    if (!peer.queue.empty() || !dispatch_one(peer, record)) {
      if (operation.copy_source) {
        copy_source(record);
      }
      peer.queue.push_back(&record);
      state_.activate(peer);
    }
  }
  outbox_.post(peer, false);
  return Status::Ok;
}

void Sender::begin_pieces(OperationRecord& record) {
  record.in_burst = true;
  links_.on_accepted(direction_of(record.operation), record.operation.bytes);
}

UpdateFrame Sender::frame_of(const OperationRecord& record, FrameKind kind) const {
  const AtomicUpdate& update = record.operation.update;
  return {.kind = kind,
          .code = static_cast<std::uint8_t>(update.code),
          .element_bytes = update.element_bytes,
          .sequence = record.sequence,
          .region = static_cast<std::uint16_t>(update.word.region.value),
          .offset = update.word.offset.value,
          .operand = update.operand,
          .compare = update.compare};
}

// The caller may reuse its buffer at once, while the copy stays until no piece can be retransmitted any more.
void Sender::copy_source(OperationRecord& record) {
  if (record.copy != nullptr) {
    return;
  }
  record.copy = state_.copies.take(record.operation.bytes);
  std::memcpy(record.copy->data(), record.operation.local, record.operation.bytes);
  record.operation.local = record.copy->data();
}

// Like copy_source, for memory that may be unmapped: process_vm_readv(2) reports that instead of raising a signal.
bool Sender::copy_readable(OperationRecord& record) {
  const std::size_t bytes = record.operation.bytes;
  SourceCopy* copy = state_.copies.take(bytes);
  const iovec here{copy->data(), bytes};
  const iovec there{record.operation.local, bytes};
  if (::process_vm_readv(::getpid(), &here, 1, &there, 1, 0) != static_cast<ssize_t>(bytes)) {
    state_.copies.give(copy);
    return false;
  }
  record.copy = copy;
  record.operation.local = copy->data();
  return true;
}

bool Sender::dispatch_oldest(Peer& peer) {
  OperationRecord& record = *peer.queue.front();
  const std::uint64_t before = record.planned_bytes;
  if (!dispatch_one(peer, record)) {
    const Operation& operation = record.operation;
    links_.wait_for_room(
        peer, direction_of(operation),
        {.total = operation.bytes, .offset = record.planned_bytes, .lane = record.lane});
    return record.planned_bytes != before;
  }
  peer.queue.pop_front();
  return true;
}

bool Sender::dispatch_retries(Peer& peer) {
  bool moved = false;
  while (!peer.retry.empty()) {
    PieceRecord& piece = *peer.retry.front();
    const Direction direction = direction_of(piece.operation->operation);
    // A retransmitted piece is posted whole. The planner is told a size of 1, so that no window holds it back.
    auto where = links_.choose(peer, direction, {.total = 1}, piece.operation->number);
    if (!where) {
      break;
    }
    where->offset = piece.offset;
    where->bytes = piece.bytes;
    const fabric::PostResult result = post_piece(peer, piece, *where);
    if (result == fabric::PostResult::Refused) {
      refuse(*piece.operation, *state_.rails[where->local.value].rail);
      peer.retry.pop_front();
      on_piece_delivered(&piece);
      moved = true;
    } else if (result == fabric::PostResult::Posted) {
      peer.retry.pop_front();
      moved = true;
    }
  }
  return moved;
}

bool Sender::dispatch_one(Peer& peer, OperationRecord& record) {
  const Operation& operation = record.operation;
  while (record.planned_bytes < operation.bytes) {
    auto where = links_.choose(
        peer, direction_of(operation),
        {.total = operation.bytes, .offset = record.planned_bytes, .lane = record.lane},
        record.number);
    if (!where) {
      return false;
    }
    where->bytes = std::min(where->bytes, state_.rma_bytes_max);
    // Even if the rail injects the data: a piece whose link fails is retransmitted from the copy.
    if (operation.copy_source) {
      copy_source(record);
    }
    const fabric::Rail& rail = *state_.rails[where->local.value].rail;
    PieceRecord* piece = state_.pieces.take();
    piece->operation = &record;
    piece->with_immediate = operation.kind == OperationKind::PutSignal &&
                            peer.link(where->local, where->remote).has_immediate &&
                            record.pieces < kPiecesMax;
    const fabric::PostResult result = post_piece(peer, *piece, *where);
    if (result != fabric::PostResult::Posted) {
      state_.pieces.give(piece);
    }
    if (result == fabric::PostResult::Refused && !go_on_from_copy(record, rail)) {
      refuse(record, rail);
      record.planned_bytes = operation.bytes;
      record.planned = true;
      finish_part(record);
      return true;
    }
    if (result != fabric::PostResult::Posted) {
      continue;  // the rail is now marked as full or down; or the source is now a copy
    }
    record.lane = where->lane;
    links_.on_planned(direction_of(operation), operation.bytes, where->bytes);
    record.planned_bytes += where->bytes;
    ++record.parts;
    record.pieces += piece->with_immediate ? 1 : 0;
    record.forced =
        record.forced || (operation.kind == OperationKind::PutSignal && !piece->with_immediate);
  }
  on_planned(peer, record);
  return true;
}

fabric::PostResult Sender::post_piece(Peer& peer, PieceRecord& piece, const Piece& where) {
  const Operation& operation = piece.operation->operation;
  RailLink& link = peer.link(where.local, where.remote);
  LocalRail& local = state_.rails[link.local.value];
  const fabric::RegionKey& region = *link.regions[operation.remote.region.value];
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
      break;
    case fabric::PostResult::Full:
      links_.on_full(local, link);
      break;
    case fabric::PostResult::Refused:
      add_to(local.counters->errors, 1);
      break;
    case fabric::PostResult::Failed:
      links_.on_refused(peer, link);
      break;
  }
  return result;
}

// Some providers register every source with write access (EFA), which fails for read-only pages. Those are then sent
// from a copy, unless they are too large.
bool Sender::go_on_from_copy(OperationRecord& record, const fabric::Rail& rail) {
  const Operation& operation = record.operation;
  const bool may_help = operation.kind != OperationKind::Get && !operation.on_device &&
                        record.copy == nullptr && operation.bytes <= kRescuedBytesMax &&
                        std::string_view(rail.last_action()) == fabric::kRegisterAction;
  return may_help && copy_readable(record);
}

void Sender::refuse(OperationRecord& record, const fabric::Rail& rail) {
  record.failed = true;
  record.refused = record.sequenced;
  if (state_.now_ns - state_.refused_ns < kRefusedIntervalNs && state_.refused_ns != 0) {
    return;
  }
  state_.refused_ns = state_.now_ns;
  const Operation& operation = record.operation;
  const std::string_view action = rail.last_action();
  log::error(
      "{} of {} bytes at {} for PE {} failed: {} on rail {} ({}) says {}; {}",
      operation.kind == OperationKind::Get ? "get" : "put", operation.bytes, operation.local,
      operation.peer.value, action, rail.nic(), rail.address_text(),
      fabric::error_words(rail.last_error()),
      action == fabric::kRegisterAction
          ? "check that all of it is mapped; raise RLIMIT_MEMLOCK (ulimit -l), or use memory "
            "of the symmetric heap, which is already registered"
          : "the provider does not support this operation; WEFT_PROVIDER selects another");
}

// All pieces are posted. The signal may overtake them, so it names their number.
void Sender::on_planned(Peer& peer, OperationRecord& record) {
  record.planned = true;
  if (record.operation.kind == OperationKind::PutSignal && !record.forced) {
    UpdateFrame frame = frame_of(record, FrameKind::Signal);
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
  outbox_.append(peer, FlushFrame{.sequence = peer.next_sequence});
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

// When `parts` is 1, only the acknowledgement is missing: all pieces are known to be delivered.
void Sender::finish_part(OperationRecord& record) {
  --record.parts;
  const bool is_last = record.planned && record.parts == 1;
  if (is_last && (record.refused || (record.forced && !record.failed))) {
    end_sequence(record);
  }
  if (record.parts != 0) {
    return;
  }
  if (record.in_burst) {
    links_.on_finished(direction_of(record.operation));
  }
  record.operation.counter->complete(record.failed);
  if (record.copy != nullptr) {
    state_.copies.give(record.copy);
  }
  state_.operations.give(&record);
}

// No piece is in flight any more: the target applies the signal now (Force), or never (Skip).
void Sender::end_sequence(OperationRecord& record) {
  if (Peer& peer = *state_.peers[record.operation.peer.value]; peer.status == Status::Ok) {
    outbox_.append(peer, frame_of(record, record.refused ? FrameKind::Skip : FrameKind::Force));
  }
  record.forced = false;
  record.refused = false;
}

void Sender::on_acked(Peer& peer, std::uint32_t floor) {
  // Acknowledgements may arrive out of order: a stale one changes nothing.
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

// A reply is processed once, while the record waits for it. A stale one finds no record, or one that waits for no
// reply.
bool Sender::on_reply(Peer& peer, std::uint64_t token, std::uint64_t value) {
  OperationRecord* record = state_.operations.find(token);
  if (record == nullptr || !record->wants_reply || record->operation.peer != peer.pe) {
    return false;
  }
  const std::uint32_t index = record->sequence - peer.acked_floor;
  if (index < peer.unacked.size() && peer.unacked[index] == record) {
    peer.unacked[index] = nullptr;
  } else if (std::erase(peer.late_replies, record) == 0) {
    return false;
  }
  *record->operation.result = value;
  finish_part(*record);
  return true;
}

// Pieces that are still posted on a rail fail there, and then reach drop_piece through Recovery.
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
