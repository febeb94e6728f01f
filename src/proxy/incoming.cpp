#include "src/proxy/incoming.hpp"

#include "src/base/atomic.hpp"

namespace weft::proxy {

using device::Command;
using device::CommandKind;

namespace {

// Converts a small record to a command for the GPU: offsets become local addresses.
Command command_of(const Record& record, std::uint64_t heap) {
  Command command;
  if (record.kind != RecordKind::SmallPut && record.kind != RecordKind::GetReply) {
    const device::WordUpdate update = update_of(record);
    device::InboxUpdate{.word_address = heap + update.word_offset,
                        .operand = update.operand,
                        .compare = update.compare,
                        .op = update.op,
                        .element_bytes = update.element_bytes}
        .write_to(command);
  }
  // Threads that apply several commands at once start a new group with it.
  const std::uint8_t fence = (record.flags & kFenced) != 0 ? device::kFenceBefore : 0;
  if (record.kind == RecordKind::Atomic || record.kind == RecordKind::DirectPut) {
    command.kind = CommandKind::Atomic;
    command.flags = fence | ((record.flags & kFetches) != 0 ? device::kReplyWanted : 0);
    return command;
  }
  command.flags = fence | device::kPayloadInSlot;
  command.kind = record.kind == RecordKind::PutSignal ? CommandKind::PutSignal : CommandKind::Put;
  device::InboxPut{.dest_address = record.kind == RecordKind::GetReply
                                       ? GetReplyRecord::from(record).requester_address
                                       : heap + PutRecord::from(record).dest_offset,
                   .bytes = record.payload_bytes}
      .write_to(command);
  return command;
}

}  // namespace

Incoming::Incoming(EngineContext& context, Pe peer, Outgoing& outgoing)
    : context_(context), peer_(peer), outgoing_(outgoing), goals_(context.layout.slots()) {}

ParcelView Incoming::parcel(std::uint64_t number) const {
  const auto slot = static_cast<std::uint32_t>(number % goals_.size());
  return ParcelView(context_.staging.base + context_.layout.receive_slot(peer_, slot));
}

Incoming::Arrival Incoming::next_arrival() const {
  const auto slot = static_cast<std::uint32_t>(next_ % goals_.size());
  return {.word = &context_.word(context_.layout.arrival(peer_, slot)),
          .value = outgoing_.is_lost() ? ~std::uint64_t{0} : next_ + 1};
}

bool Incoming::has_arrived(std::uint64_t number) const {
  const auto slot = static_cast<std::uint32_t>(number % goals_.size());
  // SYNC atomic-update (pairs with src/transport/atomic_update.hpp): the parcel has arrived.
  return AtomicRef(context_.word(context_.layout.arrival(peer_, slot)))
             .load(std::memory_order_acquire) == number + 1;
}

// Nothing is requested of a lost peer or accepted from it: its answers may refer to requests that
// have ended.
bool Incoming::pump() {
  if (outgoing_.is_lost()) {
    return false;
  }
  bool moved = handle_parcels();
  if (applied_ != next_ && !outgoing_.is_lost()) {
    moved = apply_parcels() || moved;
  }
  return (credited_ != applied_ && !outgoing_.is_lost() && post_credit()) || moved;
}

// ---- Handling: everything is started in order.

// Each field of a header or record is read only once, since the peer's NIC could change it
// meanwhile.
bool Incoming::begin_parcel() {
  const ParcelHeader header = parcel(next_).header();
  if (header.sequence != next_ || header.bytes < sizeof(ParcelHeader) ||
      header.bytes > context_.layout.slot_bytes()) {
    outgoing_.blame("a parcel of GPU commands that is not the next one, or too long");
    return false;
  }
  parcel_bytes_ = header.bytes;
  offset_ = sizeof(ParcelHeader);
  return true;
}

bool Incoming::handle_parcels() {
  bool moved = false;
  while (next_ - applied_ < goals_.size() && (offset_ != 0 || has_arrived(next_))) {
    if (offset_ == 0 && !begin_parcel()) {
      return true;
    }
    while (offset_ < parcel_bytes_) {
      const ParcelView view = parcel(next_);
      const std::size_t left = parcel_bytes_ - offset_;
      const Record record = left < sizeof(Record) ? Record{} : view.record(offset_);
      const std::size_t bytes = sizeof(Record) + padded_payload(record.payload_bytes);
      const std::string_view fault = bytes > left
                                         ? "a record of GPU commands that is longer than its parcel"
                                         : fault_of(record);
      if (!fault.empty()) {
        outgoing_.blame(fault);
        return true;
      }
      if (!handle(record, view.payload(offset_))) {
        return moved;
      }
      offset_ += bytes;
      moved = true;
    }
    now_.bytes = parcel_bytes_;
    goals_[next_ % goals_.size()] = now_;
    offset_ = 0;
    ++next_;
  }
  return moved;
}

std::string_view Incoming::fault_of(const Record& record) const {
  if (!is_sane(record)) {
    return "an unknown GPU command, or one for memory that does not exist";
  }
  return is_answer(record.kind) && !outgoing_.is_awaited(record)
             ? "a reply to a GPU command that expects none"
             : std::string_view{};
}

// False: the record has to wait, and so do all records after it.
bool Incoming::handle(const Record& record, const std::byte* payload) {
  if ((record.flags & kFenced) != 0) {
    fence_inbox_ = now_.inbox;
    fence_direct_puts_ = now_.direct_puts;
  }
  switch (record.kind) {
    case RecordKind::SmallPut:
    case RecordKind::PutSignal:
    case RecordKind::Atomic:
    case RecordKind::GetReply:
      return handle_small(record, payload);
    case RecordKind::BulkPut:
    case RecordKind::GetReplyBulk:
      return handle_bulk(record, payload);
    case RecordKind::Get:
      if (outgoing_.expect_answer()) {
        outgoing_.answer_get(record);
      } else {
        outgoing_.blame("more gets of GPUs' memory than a PE may have outstanding");
      }
      return true;
    case RecordKind::FetchReply:
      return true;  // see finish_answers
    case RecordKind::DirectPut:
      return handle_direct_put(record);
  }
  return true;
}

bool Incoming::handle_bulk(const Record& record, const std::byte* payload) {
  const bool is_reply = record.kind == RecordKind::GetReplyBulk;
  if (!is_reply &&
      (context_.inbox.applied() < fence_inbox_ || !has_direct_puts(fence_direct_puts_))) {
    return false;
  }
  const std::uint64_t dest_address =
      is_reply ? GetReplyRecord::from(record).requester_address
               : context_.heap_address() + PutRecord::from(record).dest_offset;
  now_.ticket = context_.copier.copy(CopyDirection::ToGpu, reinterpret_cast<void*>(dest_address),
                                     payload, record.payload_bytes);
  return true;
}

bool Incoming::handle_small(const Record& record, const std::byte* payload) {
  if (!context_.copier.is_done(CopyDirection::ToGpu, now_.ticket) ||
      !has_direct_puts(now_.direct_puts) ||
      !context_.inbox_turns.enter(peer_.value, context_.inbox.has_room())) {
    return false;
  }
  if (record.kind == RecordKind::Atomic && (record.flags & kFetches) != 0 &&
      !outgoing_.expect_answer()) {
    outgoing_.blame("more fetching atomics than a PE may have outstanding");
    return true;
  }
  context_.inbox.push(command_of(record, context_.heap_address()), {payload, record.payload_bytes},
                      {.peer = peer_, .request = record.request});
  now_.inbox = context_.inbox.head();
  return true;
}

// The data arrives on its own. Its signal waits for it, as every small operation does.
bool Incoming::handle_direct_put(const Record& record) {
  now_.direct_puts = DirectPutRecord::from(record).put_number + 1;
  return (record.flags & kUpdates) == 0 || handle_small(record, nullptr);
}

// The words are set in any order, each one after all of its data is in the GPU's memory.
bool Incoming::has_direct_puts(std::uint64_t below) {
  const std::uint64_t before = direct_puts_;
  while (direct_puts_ < below) {
    const auto slot = static_cast<std::uint32_t>(direct_puts_ % context_.layout.direct_window());
    // SYNC atomic-update (pairs with src/transport/atomic_update.hpp): the data has arrived.
    const std::uint64_t arrived =
        AtomicRef(context_.word(context_.layout.direct_arrival(peer_, slot)))
            .load(std::memory_order_acquire);
    if (arrived != direct_puts_ + 1) {
      break;
    }
    ++direct_puts_;
  }
  if (direct_puts_ != before) {
    context_.copier.show_nic_writes();
  }
  return direct_puts_ >= below;
}

bool Incoming::is_put_sane(const Record& record) const {
  return context_.is_in_heap(PutRecord::from(record).dest_offset, record.payload_bytes);
}

// The next put, or the last one again.
bool Incoming::is_put_number_sane(std::uint64_t put_number) const {
  return put_number == now_.direct_puts || put_number + 1 == now_.direct_puts;
}

bool Incoming::is_update_sane(const Record& record) const {
  const device::WordUpdate update = update_of(record);
  return update.op <= device::AtomicOp::Fetch &&
         (update.element_bytes == 4 || update.element_bytes == 8) &&
         update.word_offset % update.element_bytes == 0 &&
         context_.is_in_heap(update.word_offset, update.element_bytes);
}

// A small record fits into a slot of the inbox.
bool Incoming::is_sane(const Record& record) const {
  const bool is_small = record.payload_bytes <= device::kPayloadBytes;
  switch (record.kind) {
    case RecordKind::SmallPut:
      return is_small && is_put_sane(record);
    case RecordKind::BulkPut:
      return is_put_sane(record);
    case RecordKind::PutSignal:
      return is_small && is_put_sane(record) && is_update_sane(record);
    case RecordKind::Atomic:
      return record.payload_bytes == 0 && is_update_sane(record);
    case RecordKind::DirectPut:  // the rails have checked what it wrote
      return record.payload_bytes == 0 && (record.flags & kFetches) == 0 &&
             is_put_number_sane(DirectPutRecord::from(record).put_number) &&
             ((record.flags & kUpdates) == 0 || is_update_sane(record));
    case RecordKind::Get: {
      const GetRecord get = GetRecord::from(record);
      return record.payload_bytes == 0 && context_.is_in_heap(get.source_offset, get.bytes);
    }
    case RecordKind::GetReply:
      return is_small;
    case RecordKind::GetReplyBulk:
    case RecordKind::FetchReply:
      return true;  // our own request determines the destination
  }
  return false;
}

// ---- Applied: everything is visible, in order.

bool Incoming::apply_parcels() {
  const std::uint64_t before = applied_;
  while (applied_ < next_) {
    const Goal& goal = goals_[applied_ % goals_.size()];
    if (context_.inbox.applied() < goal.inbox ||
        !context_.copier.is_done(CopyDirection::ToGpu, goal.ticket) ||
        !has_direct_puts(goal.direct_puts) || !finish_answers(applied_)) {
      break;
    }
    ++applied_;
    answer_offset_ = 0;
  }
  return applied_ != before;
}

// The answers that our own gets and fetches waited for have arrived.
bool Incoming::finish_answers(std::uint64_t number) {
  const ParcelView view = parcel(number);
  if (view.header().answer_count == 0) {
    return true;
  }
  if (answer_offset_ == 0) {
    answer_offset_ = sizeof(ParcelHeader);
  }
  const std::size_t bytes = goals_[number % goals_.size()].bytes;
  while (answer_offset_ + sizeof(Record) <= bytes) {
    const Record record = view.record(answer_offset_);
    if (is_answer(record.kind) && !outgoing_.on_answer(record)) {
      return false;
    }
    answer_offset_ += sizeof(Record) + padded_payload(record.payload_bytes);
  }
  return true;
}

// Adds the difference instead of setting the sum, because atomics to one peer may be reordered.
bool Incoming::post_credit() {
  const Status status = context_.transport.post(
      {.kind = transport::OperationKind::Atomic,
       .peer = peer_,
       .remote = context_.in_staging(context_.layout.credit(context_.me)),
       .bytes = 8,
       .update = {.code = transport::AtomicCode::Add,
                  .element_bytes = 8,
                  .word = context_.in_staging(context_.layout.credit(context_.me)),
                  .operand = applied_ - credited_},
       .counter = outgoing_.loose_counter()});
  if (status == Status::Again) {
    return false;
  }
  credited_ = applied_;
  if (status != Status::Ok) {
    outgoing_.lose();
  }
  return true;
}

}  // namespace weft::proxy
