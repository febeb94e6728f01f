#include "src/transport/rails/sender.hpp"

#include <algorithm>
#include <cstring>
#include <string_view>
#include <utility>

#include "src/base/error.hpp"
#include "src/base/log.hpp"
#include "src/transport/rails/pieces.hpp"
#include "src/transport/rails/update_frames.hpp"

namespace weft::transport::rails {
namespace {

constexpr std::size_t kQueuedOperationsMax = 1024;
// The most sequence numbers that are not acknowledged. The rest of the target's sequence window is
// slack for late arrivals.
constexpr std::uint32_t kUnackedMax = SequenceWindow::kSpan - 512;
// The largest operation that is copied because its memory cannot be registered.
constexpr std::size_t kRescuedBytesMax = std::size_t{4} << 20U;
constexpr std::uint32_t kUnackedFlush = SequenceWindow::kSpan / 2;

bool is_sequenced(OperationKind kind) {
  return kind == OperationKind::PutSignal || kind == OperationKind::Atomic;
}

// True if the peer has sent the keys of the regions that the operation uses.
bool has_regions(const Peer& peer, const Operation& operation) {
  if (is_sequenced(operation.kind) && !peer.has_region(operation.update.word.region)) {
    return false;
  }
  if (!operation.segments.empty()) {
    return std::ranges::all_of(operation.segments, [&](const GatherSegment& segment) {
      return peer.has_region(segment.remote.region);
    });
  }
  return operation.kind == OperationKind::Atomic || peer.has_region(operation.remote.region);
}

Direction direction_of(const Operation& operation) {
  return operation.kind == OperationKind::Get ? Direction::Read : Direction::Write;
}

// For all pieces or for none, because the signal of an operation that mixes them is acknowledged by
// a Force frame, which may overtake immediate data in the target's queues. If too few immediates
// are left, the signal waits for the data, as on NICs without immediate data.
void take_immediates(const State& state, Peer& peer, OperationRecord& record) {
  const Operation& operation = record.operation;
  const std::uint64_t shortest =
      std::max<std::uint64_t>(std::min(state.options.stripe_bytes_min, state.rma_bytes_max), 1);
  const std::uint64_t pieces = operation.bytes / shortest + 1 +
                               (record.segments != nullptr ? record.segments->all().size() : 0);
  if (pieces <= kPiecesMax && pieces <= peer.immediates_max - peer.immediates_taken) {
    record.immediates = static_cast<std::uint32_t>(pieces);
    peer.immediates_taken += pieces;
  }
}

}  // namespace

// True if the whole operation is one frame that is answered only by an acknowledgement.
bool Sender::is_message(const Operation& operation) const {
  switch (operation.kind) {
    case OperationKind::Atomic:
      return operation.result == nullptr;
    case OperationKind::PutSignal:
      return operation.bytes == 0 || (operation.bytes <= state_.options.eager_bytes_max &&
                                      !operation.on_device && operation.segments.empty());
    case OperationKind::Put:
    case OperationKind::Get:
      return false;
  }
  return false;
}

OperationRecord* Sender::make_record(const Operation& operation) {
  OperationRecord* record = state_.operations.take();
  *record = {};
  record->operation = operation;
  if (!operation.segments.empty()) {
    record->segments = state_.segment_lists.take();
    record->segments->assign(operation.segments);
  }
  if (state_.registers_local && !operation.copy_source) {
    record->operation.copy_source = sources_.is_better_copied(operation);
  }
  // Atomics travel in Weft's own messages, so they do not advance the operation counter of the
  // policies.
  record->number = state_.operation_count;
  state_.operation_count += operation.kind == OperationKind::Atomic ? 0 : 1;
  record->parts = 1;  // until it is planned in full
  operation.counter->issue_locked();
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
  const bool is_counted = is_sequenced(operation.kind) || has_short_segments(operation);
  if (is_counted) {
    const std::uint32_t unacked = peer.next_sequence - peer.acked_floor;
    const bool has_asked = static_cast<std::int32_t>(peer.flush_asked - peer.acked_floor) > 0;
    const bool is_short =
        unacked >= kUnackedFlush || peer.immediates_taken > peer.immediates_max / 2;
    if (is_short && !has_asked) {
      request_flush(peer);
    }
    if (unacked >= kUnackedMax) {
      return Status::Again;
    }
  }
  if (is_message(operation)) {
    accept_message(peer, operation);
    return Status::Ok;
  }
  OperationRecord& record = *make_record(operation);
  if (is_counted) {
    if (operation.kind == OperationKind::Put) {
      // Made a put_signal, because only operations with a sequence number are acknowledged. Its
      // signal is a fetch, which changes nothing.
      record.operation.kind = OperationKind::PutSignal;
      record.operation.update = {
          .code = AtomicCode::Fetch,
          .word = {.region = RegionIndex(0), .offset = HeapOffset(state_.probe_offset)}};
    }
    return accept_sequenced(peer, record);
  }
  begin_pieces(record);
  if (peer.queue.empty() && dispatch_one(peer, record)) {
    return Status::Ok;
  }
  if (record.operation.copy_source) {
    sources_.copy(record);
  }
  peer.queue.push_back(&record);
  state_.activate(peer);
  return Status::Ok;
}

// Needs no OperationRecord: the batch keeps the frame until it has arrived, and the acknowledgement
// only advances the operation's counter.
void Sender::accept_message(Peer& peer, const Operation& operation) {
  operation.counter->issue_locked();
  // Atomics do not advance the operation counter of the policies.
  state_.operation_count += operation.kind == OperationKind::Atomic ? 0 : 1;
  peer.unacked.push_back({.counter = operation.counter});
  const std::uint32_t sequence = peer.next_sequence++;
  peer.flush_needed = peer.next_sequence;
  if (operation.kind == OperationKind::Atomic) {
    outbox_.append(peer, frame_of(operation.update, FrameKind::Atomic, sequence));
  } else {
    UpdateFrame& frame = outbox_.append_update(
        peer, operation.bytes == 0 ? FrameKind::Signal : FrameKind::EagerSignal,
        {static_cast<const std::byte*>(operation.local), operation.bytes});
    fill_frame(frame, operation.update, sequence);
    frame.count = static_cast<std::uint32_t>(operation.bytes);
    frame.data_region = static_cast<std::uint16_t>(operation.remote.region.value);
    frame.data_offset = operation.remote.offset.value;
  }
  outbox_.post(peer, false);
}

// An atomic with a result is one frame and its reply. A large put_signal is pieces, then a frame.
Status Sender::accept_sequenced(Peer& peer, OperationRecord& record) {
  const Operation& operation = record.operation;
  record.sequenced = true;
  record.sequence = peer.next_sequence++;
  record.wants_reply = operation.kind == OperationKind::Atomic;
  peer.flush_needed = record.wants_reply ? peer.flush_needed : peer.next_sequence;
  ++record.parts;  // the acknowledgement, or the reply
  peer.unacked.push_back({.record = &record});
  if (record.wants_reply) {
    UpdateFrame frame = frame_of(operation.update, FrameKind::Atomic, record.sequence);
    frame.token = record.token();
    outbox_.append(peer, frame);
    finish_part(record);
  } else {
    begin_pieces(record);
    if (!peer.queue.empty() || !dispatch_one(peer, record)) {
      if (operation.copy_source) {
        sources_.copy(record);
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
  selector_.on_accepted(direction_of(record.operation), record.operation.bytes);
}

bool Sender::dispatch_oldest(Peer& peer) {
  OperationRecord& record = *peer.queue.front();
  const std::uint64_t before = record.planned_bytes;
  if (!dispatch_one(peer, record)) {
    const Operation& operation = record.operation;
    selector_.wait_for_room(
        peer, direction_of(operation),
        {.total = operation.bytes, .offset = record.planned_bytes, .span = record.span});
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
    // A retransmitted piece is posted whole. The planner is told a size of 1, so that no window
    // holds it back.
    auto where = selector_.choose(peer, direction, {.total = 1}, piece.operation->number);
    if (!where) {
      break;
    }
    where->offset = piece.offset;
    where->bytes = piece.bytes;
    const fabric::PostResult result = post_piece(peer, piece, *where);
    if (result == fabric::PostResult::Refused) {
      failures_.end_refused(*piece.operation, *state_.rails[where->local.value].rail);
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
  if (record.sequenced && !std::exchange(record.has_begun, true)) {
    take_immediates(state_, peer, record);
  }
  while (record.planned_bytes < operation.bytes) {
    if (is_eager_next(record)) {
      if (!send_piece(peer, record)) {
        return false;
      }
      continue;
    }
    auto where = selector_.choose(
        peer, direction_of(operation),
        {.total = operation.bytes, .offset = record.planned_bytes, .span = record.span},
        record.number);
    if (!where) {
      return false;
    }
    where->bytes = std::min({where->bytes, state_.rma_bytes_max, bytes_together(record)});
    // Even if the rail injects the data: a piece whose link fails is retransmitted from the copy.
    if (operation.copy_source) {
      sources_.copy(record);
    }
    const fabric::Rail& rail = *state_.rails[where->local.value].rail;
    PieceRecord* piece = state_.pieces.take();
    piece->operation = &record;
    piece->faults = 0;
    piece->with_immediate = operation.kind == OperationKind::PutSignal &&
                            peer.link(where->local, where->remote).has_immediate &&
                            record.pieces < record.immediates;
    const fabric::PostResult result = post_piece(peer, *piece, *where);
    if (result != fabric::PostResult::Posted) {
      state_.pieces.give(piece);
    }
    if (result == fabric::PostResult::Refused && !go_on_from_copy(record, rail)) {
      failures_.end_refused(record, rail);
      record.planned_bytes = operation.bytes;
      record.planned = true;
      finish_part(record);
      return true;
    }
    if (result != fabric::PostResult::Posted) {
      continue;  // the rail is now marked as full or down; or the source is now a copy
    }
    record.span = where->span;
    selector_.on_planned(direction_of(operation), operation.bytes, where->bytes);
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
  const Ends ends = ends_of(*piece.operation, where.offset);
  const fabric::RegionKey& region = peer.region_of(link, ends.there.region);
  const fabric::LocalMemory here{ends.here, where.bytes, operation.on_device};
  const fabric::RemoteMemory there{link.address, region.base + ends.there.offset.value, region.key};
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
      links_.on_full(peer, link);
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

// Some providers register every source with write access (EFA), which fails for read-only pages.
// Those are then sent from a copy, unless they are too large.
bool Sender::go_on_from_copy(OperationRecord& record, const fabric::Rail& rail) {
  const Operation& operation = record.operation;
  const bool may_help = operation.kind != OperationKind::Get && !operation.on_device &&
                        record.copy == nullptr && operation.bytes <= kRescuedBytesMax &&
                        std::string_view(rail.last_action()) == fabric::kRegisterAction;
  return may_help && sources_.copy_readable(record);
}

void Sender::give_up(PieceRecord* piece, std::string_view words) {
  failures_.end_repeated(*piece, words);
  on_piece_delivered(piece);
}

// All pieces are posted. The signal may overtake them, so it names their number.
void Sender::on_planned(Peer& peer, OperationRecord& record) {
  record.planned = true;
  if (record.operation.kind == OperationKind::PutSignal && !record.forced) {
    UpdateFrame frame = frame_of(record.operation.update, FrameKind::Signal, record.sequence);
    frame.count = record.pieces + record.eager_pieces;
    outbox_.append(peer, frame);
  }
  finish_part(record);
}

// Asks the peer for an acknowledgement. Atomics with a result need none: the target replies as soon
// as it has applied them.
void Sender::request_flush(Peer& peer) {
  const auto is_behind = [&](std::uint32_t sequence) {
    return static_cast<std::int32_t>(peer.flush_needed - sequence) <= 0;
  };
  if (is_behind(peer.acked_floor) || is_behind(peer.flush_asked)) {
    return;
  }
  peer.flush_asked = peer.flush_needed;
  outbox_.append(peer, FlushFrame{.sequence = peer.flush_needed});
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
    selector_.on_finished(direction_of(record.operation));
  }
  record.operation.counter->complete(record.failed);
  if (record.copy != nullptr) {
    state_.copies.give(record.copy);
  }
  if (record.segments != nullptr) {
    state_.segment_lists.give(record.segments);
  }
  state_.operations.give(&record);
}

// When no piece is in flight any more: a frame tells the target to apply the signal now (Force), or
// never (Skip).
void Sender::end_sequence(OperationRecord& record) {
  if (Peer& peer = *state_.peers[record.operation.peer.value]; peer.status == Status::Ok) {
    const FrameKind kind = record.refused ? FrameKind::Skip : FrameKind::Force;
    UpdateFrame frame = frame_of(record.operation.update, kind, record.sequence);
    frame.count = record.eager_pieces;
    outbox_.append(peer, frame);
  }
  record.forced = false;
  record.refused = false;
}

void Sender::on_acked(Peer& peer, std::uint32_t floor) {
  // Consecutive operations mostly share a counter, which is then advanced once for all of them.
  OperationCounter* counter = nullptr;
  std::uint64_t count = 0;
  const auto tell = [&] {
    if (counter != nullptr) {
      counter->complete(false, count);
    }
  };
  // Acknowledgements may arrive out of order: a stale one changes nothing.
  while (static_cast<std::int32_t>(floor - peer.acked_floor) > 0 && !peer.unacked.empty()) {
    const Unacked oldest = peer.unacked.front();
    peer.unacked.pop_front();
    ++peer.acked_floor;
    if (oldest.counter != counter && oldest.counter != nullptr) {
      tell();
      counter = oldest.counter;
      count = 0;
    }
    count += oldest.counter != nullptr ? 1 : 0;
    if (oldest.record != nullptr) {
      peer.immediates_taken -= std::exchange(oldest.record->immediates, 0);
    }
    if (oldest.record != nullptr && oldest.record->wants_reply) {
      peer.late_replies.push_back(oldest.record);
    } else if (oldest.record != nullptr) {
      finish_part(*oldest.record);
    }
  }
  tell();
}

// A reply is processed once, while the record waits for it. A stale one finds no record, or one
// that waits for no reply.
bool Sender::on_reply(Peer& peer, std::uint64_t token, std::uint64_t value) {
  OperationRecord* record = state_.operations.find(token);
  if (record == nullptr || !record->wants_reply || record->operation.peer != peer.pe) {
    return false;
  }
  const std::uint32_t index = record->sequence - peer.acked_floor;
  if (index < peer.unacked.size() && peer.unacked[index].record == record) {
    peer.unacked[index].record = nullptr;
  } else if (std::erase(peer.late_replies, record) == 0) {
    return false;
  }
  *record->operation.result = value;
  finish_part(*record);
  return true;
}

// Pieces that are still posted on a rail fail there, and then reach drop_piece through Recovery.
void Sender::fail_all(Peer& peer) {
  for (const Unacked& operation : peer.unacked) {
    if (operation.counter != nullptr) {
      operation.counter->complete(true);
    } else if (operation.record != nullptr) {
      peer.late_replies.push_back(operation.record);
    }
  }
  peer.unacked.clear();
  for (OperationRecord* record : peer.late_replies) {
    record->failed = true;
    finish_part(*record);
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
