#include "src/proxy/incoming.hpp"

#include "src/base/atomic.hpp"
#include "src/base/error.hpp"

namespace weft::proxy {

using device::Command;
using device::CommandKind;

namespace {

// The record as the GPU gets it: offsets become addresses here.
Command command_of(const Record& record, std::uint64_t heap) {
  Command command;
  command.element_bytes = record.element_bytes;
  command.op = record.op;
  command.bytes = record.payload_bytes;
  command.operand = record.operand;
  command.compare = record.compare;
  command.word = heap + record.word;
  // Those who apply several at once begin anew with it.
  const std::uint8_t fence = (record.flags & kFenced) != 0 ? device::kFenceBefore : 0;
  if (record.kind == RecordKind::Atomic || record.kind == RecordKind::DirectPut) {
    command.kind = CommandKind::Atomic;
    command.flags = fence | ((record.flags & kFetches) != 0 ? device::kReplyWanted : 0);
    return command;
  }
  command.flags = fence | device::kPayloadInSlot;
  command.kind = record.kind == RecordKind::PutSignal ? CommandKind::PutSignal : CommandKind::Put;
  command.dest = record.kind == RecordKind::GetReply ? record.dest : heap + record.dest;
  return command;
}

}  // namespace

Incoming::Incoming(Context& context, Pe peer, Outgoing& outgoing)
    : context_(context), peer_(peer), outgoing_(outgoing), goals_(context.layout.slots()) {}

ParcelView Incoming::parcel(std::uint64_t number) const {
  const auto slot = static_cast<std::uint32_t>(number % goals_.size());
  return ParcelView(context_.staging.base + context_.layout.receive_slot(peer_, slot));
}

bool Incoming::has_arrived(std::uint64_t number) const {
  const auto slot = static_cast<std::uint32_t>(number % goals_.size());
  // SYNC atomic-update (pairs with src/transport/atomic_update.hpp): the parcel lies there.
  return AtomicRef(context_.word(context_.layout.arrival(peer_, slot)))
             .load(std::memory_order_acquire) == number + 1;
}

bool Incoming::pump() {
  bool moved = handle_parcels();
  if (applied_ != next_) {
    moved = apply_parcels() || moved;
  }
  return (credited_ != applied_ && post_credit()) || moved;
}

// ---- Handling: everything is started, in order.

bool Incoming::handle_parcels() {
  bool moved = false;
  while (next_ - applied_ < goals_.size() && (offset_ != 0 || has_arrived(next_))) {
    const ParcelView view = parcel(next_);
    const ParcelHeader& header = view.header();
    if (offset_ == 0) {
      WEFT_CHECK(header.sequence == next_ && header.bytes <= context_.layout.slot_bytes(),
                 "parcel {} of PE {} says it is {} and has {} bytes", next_, peer_.value,
                 header.sequence, header.bytes);
      offset_ = sizeof(ParcelHeader);
    }
    while (offset_ < header.bytes) {
      if (!handle(view.record(offset_), view.payload(offset_))) {
        return moved;
      }
      offset_ = view.next(offset_);
      moved = true;
    }
    goals_[next_ % goals_.size()] = now_;
    offset_ = 0;
    ++next_;
  }
  return moved;
}

// False: it has to wait, and so does all behind it.
bool Incoming::handle(const Record& record, const std::byte* payload) {
  WEFT_CHECK(is_sane(record), "PE {} sent a record of kind {} for {} bytes at {}, word {}",
             peer_.value, static_cast<int>(record.kind), record.payload_bytes, record.dest,
             record.word);
  if ((record.flags & kFenced) != 0) {
    fence_inbox_ = now_.inbox;
    fence_direct_ = now_.direct;
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
      outgoing_.answer_get(record);
      return true;
    case RecordKind::FetchReply:
      return true;  // see finish_answers
    case RecordKind::DirectPut:
      return handle_direct(record);
  }
  return true;
}

bool Incoming::handle_bulk(const Record& record, const std::byte* payload) {
  const bool is_reply = record.kind == RecordKind::GetReplyBulk;
  if (!is_reply && (context_.inbox.applied() < fence_inbox_ || !has_direct(fence_direct_))) {
    return false;
  }
  std::byte* base = is_reply ? nullptr : context_.heap.base;
  void* dest = reinterpret_cast<void*>(reinterpret_cast<std::uint64_t>(base) + record.dest);
  now_.ticket = context_.copier.copy(Direction::ToGpu, dest, payload, record.payload_bytes);
  return true;
}

bool Incoming::handle_small(const Record& record, const std::byte* payload) {
  if (!context_.inbox.has_room() || !context_.copier.is_done(Direction::ToGpu, now_.ticket) ||
      !has_direct(now_.direct)) {
    return false;
  }
  context_.inbox.push(command_of(record, reinterpret_cast<std::uint64_t>(context_.heap.base)),
                      {payload, record.payload_bytes}, {.peer = peer_, .request = record.request});
  now_.inbox = context_.inbox.head();
  return true;
}

// The data comes, or came, by itself. Its signal waits for it as every small thing does.
bool Incoming::handle_direct(const Record& record) {
  now_.direct = record.dest + 1;
  return (record.flags & kUpdates) == 0 || handle_small(record, nullptr);
}

// The words are set in any order, each when all of its data is in the GPU's memory.
bool Incoming::has_direct(std::uint64_t below) {
  const std::uint64_t before = direct_;
  while (direct_ < below) {
    const auto slot = static_cast<std::uint32_t>(direct_ % kDirectWindow);
    // SYNC atomic-update (pairs with src/transport/atomic_update.hpp): the data is there.
    const std::uint64_t arrived =
        AtomicRef(context_.word(context_.layout.direct_arrival(peer_, slot)))
            .load(std::memory_order_acquire);
    if (arrived != direct_ + 1) {
      break;
    }
    ++direct_;
  }
  if (direct_ != before) {
    context_.copier.show_nic_writes();
  }
  return direct_ >= below;
}

bool Incoming::is_sane(const Record& record) const {
  switch (record.kind) {
    case RecordKind::SmallPut:
    case RecordKind::BulkPut:
      return context_.is_in_heap(record.dest, record.payload_bytes);
    case RecordKind::PutSignal:
      return context_.is_in_heap(record.dest, record.payload_bytes) &&
             context_.is_in_heap(record.word, record.element_bytes);
    case RecordKind::Atomic:
      return context_.is_in_heap(record.word, record.element_bytes);
    case RecordKind::DirectPut:  // what it has written, the rails have checked
      return (record.flags & kUpdates) == 0 ||
             context_.is_in_heap(record.word, record.element_bytes);
    case RecordKind::Get:
      return context_.is_in_heap(record.dest, record.bytes);
    case RecordKind::GetReply:
    case RecordKind::GetReplyBulk:
    case RecordKind::FetchReply:
      return true;  // the address is our own, from the request
  }
  return false;
}

// ---- Applied: everything is visible, in order.

bool Incoming::apply_parcels() {
  const std::uint64_t before = applied_;
  while (applied_ < next_) {
    const Goal& goal = goals_[applied_ % goals_.size()];
    if (context_.inbox.applied() < goal.inbox ||
        !context_.copier.is_done(Direction::ToGpu, goal.ticket) || !has_direct(goal.direct) ||
        !finish_answers(applied_)) {
      break;
    }
    ++applied_;
    answer_offset_ = 0;
  }
  return applied_ != before;
}

// What our own gets and fetches have waited for is here now.
bool Incoming::finish_answers(std::uint64_t number) {
  const ParcelView view = parcel(number);
  if (view.header().answer_count == 0) {
    return true;
  }
  if (answer_offset_ == 0) {
    answer_offset_ = sizeof(ParcelHeader);
  }
  while (answer_offset_ < view.header().bytes) {
    const Record& record = view.record(answer_offset_);
    if (is_answer(record.kind) && !outgoing_.on_answer(record)) {
      return false;
    }
    answer_offset_ = view.next(answer_offset_);
  }
  return true;
}

// Adds what is new instead of setting the sum: atomics to one peer may overtake each other.
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
