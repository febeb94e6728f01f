#include "src/proxy/outgoing.hpp"

#include <algorithm>

#include "src/base/atomic.hpp"
#include "src/base/error.hpp"

namespace weft::proxy {

using device::Command;
using device::CommandKind;
using transport::OperationCounter;

namespace {

// The transport copies parcels of up to this size at post; their slots wait only for the credit.
constexpr std::size_t kCopiedBytesMax = 1024;

// The kind of the command that a record was part of, for reporting its failure.
CommandKind command_kind_of(const Record& record) {
  switch (record.kind) {
    case RecordKind::SmallPut:
    case RecordKind::BulkPut:
      return CommandKind::Put;
    case RecordKind::PutSignal:
      return CommandKind::PutSignal;
    case RecordKind::Atomic:
      return CommandKind::Atomic;
    case RecordKind::Get:
      return CommandKind::Get;
    case RecordKind::GetReply:
    case RecordKind::GetReplyBulk:
    case RecordKind::FetchReply:
      break;
    case RecordKind::DirectPut:
      return (record.flags & kUpdates) != 0 ? CommandKind::PutSignal : CommandKind::Put;
  }
  return CommandKind::Nop;
}

}  // namespace

Outgoing::Outgoing(Context& context, Pe peer)
    : context_(context),
      peer_(peer),
      queue_(context.limits.commands),
      answers_(context.limits.requests),
      requests_(context.limits.requests),
      slots_(context.layout.slots()),
      counter_memory_(std::make_unique<std::vector<OperationCounter>>(1 + context.layout.slots())),
      counters_(*counter_memory_),
      gpu_direct_(context, peer) {
  for (std::uint32_t i = 0; i < context.limits.requests; ++i) {
    free_requests_.push_back(i);
  }
}

Outgoing::~Outgoing() {
  if (!is_quiet()) {
    // The transport will still write to the counters; it may outlive this object, and nothing tells when it is done.
    context_.transport.keep(std::move(counter_memory_));
  }
}

std::uint32_t Outgoing::slot_of(std::uint64_t parcel) const {
  return static_cast<std::uint32_t>(parcel % slots_.size());
}

std::byte* Outgoing::memory_of(std::uint64_t parcel) const {
  return context_.staging.base + context_.layout.send_slot(peer_, slot_of(parcel));
}

OperationCounter& Outgoing::counter_of(std::uint64_t parcel) const {
  return counters_[1 + slot_of(parcel)];
}

void Outgoing::enqueue(const Command& command,
                       const std::byte* payload,
                       const CommandOrigin& origin) {
  Queued& queued = queue_.push();
  queued.command = command;
  queued.origin = origin;
  queued.packed_bytes = 0;
  queued.begun = false;
  if (fence_next_) {
    queued.command.flags |= device::kFenceBefore;
    fence_next_ = false;
  }
  if ((command.flags & device::kPayloadInSlot) != 0) {
    std::copy_n(payload, command.bytes, queued.payload.begin());
  }
}

bool Outgoing::expect_answer() {
  if (expected_answers_ == answers_.capacity()) {
    return false;
  }
  ++expected_answers_;
  return true;
}

void Outgoing::answer_get(const Record& get) {
  if (!lost_) {
    answers_.push() = {.asked = get, .packed_bytes = 0};
  }
}

void Outgoing::answer_fetch(std::uint32_t request, std::uint64_t value) {
  if (!lost_) {
    answers_.push() = {
        .asked = {.kind = RecordKind::FetchReply, .operand = value, .request = request},
        .packed_bytes = 0};
  }
}

Outgoing::Request* Outgoing::find_request(std::uint32_t token) {
  const std::uint32_t index = token % kRequestsMax;
  if (index >= requests_.size() || requests_[index].use != token / kRequestsMax ||
      requests_[index].kind == CommandKind::Nop) {
    return nullptr;
  }
  return &requests_[index];
}

void Outgoing::end_request(Request& request) {
  request.kind = CommandKind::Nop;
  free_requests_.push_back(static_cast<std::uint32_t>(&request - requests_.data()));
}

bool Outgoing::is_awaited(const Record& reply) {
  const Request* const request = find_request(reply.request);
  if (request == nullptr) {
    return false;
  }
  if (reply.kind == RecordKind::FetchReply) {
    return request->kind == CommandKind::Atomic;
  }
  const std::uint64_t offset = reply.dest - request->dest;
  return request->kind == CommandKind::Get && offset <= request->bytes &&
         reply.payload_bytes <= request->bytes - offset;
}

bool Outgoing::on_answer(const Record& reply) {
  Request* request = find_request(reply.request);
  if (request == nullptr) {
    return true;  // completed meanwhile, because the peer was considered lost
  }
  if (request->bytes_left > reply.payload_bytes) {
    request->bytes_left -= reply.payload_bytes;
    return true;
  }
  if (!context_.rings[request->origin.ring].finish(request->origin.position, request->answers,
                                                   reply.operand)) {
    return false;
  }
  end_request(*request);
  return true;
}

bool Outgoing::pump() {
  if (queue_.empty() && answers_.empty() && freed_ == opened_ && !gpu_direct_.has_gets() &&
      !lost_) {
    return false;
  }
  bool moved = reap();
  moved = (gpu_direct_.has_gets() && reap_direct_gets()) || moved;
  if (lost_) {
    return fail_queued() || moved;
  }
  moved = pack() || moved;
  return post() || moved;
}

// ---- Parcels that the target has applied.

bool Outgoing::reap() {
  // SYNC atomic-update (pairs with src/transport/atomic_update.hpp): the number of parcels that the peer has applied.
  const std::uint64_t credit =
      AtomicRef(context_.word(context_.layout.credit(peer_))).load(std::memory_order_acquire);
  if (!lost_ && credit > posted_) {
    blame("it has applied parcels of GPU commands that were never sent to it");
  }
  const std::uint64_t before = finished_;
  const std::uint64_t limit = lost_ ? opened_ : credit;
  while (finished_ < limit && finish_parcel(finished_)) {
    ++finished_;
    finish_offset_ = 0;
  }
  while (freed_ < finished_ && (slots_[slot_of(freed_)].copied || counter_of(freed_).is_idle())) {
    ++freed_;
  }
  return finished_ != before;
}

// Our copy of the parcel shows which commands end in it. False: retry later from where it stopped.
bool Outgoing::finish_parcel(std::uint64_t parcel) {
  const ParcelView view(memory_of(parcel));
  if (finish_offset_ == 0) {
    finish_offset_ = sizeof(ParcelHeader);
  }
  while (finish_offset_ < view.header().bytes) {
    const Record& record = view.record(finish_offset_);
    if (record.kind == RecordKind::DirectPut && !gpu_direct_.finish_put(record.dest, lost_)) {
      return false;  // its source may not be reused yet
    }
    if ((record.flags & kLastOfCommand) != 0 &&
        !finish({.ring = record.ring, .position = record.position}, command_kind_of(record),
                (record.flags & kAnswers) != 0)) {
      return false;
    }
    finish_offset_ = view.next(finish_offset_);
  }
  return true;
}

bool Outgoing::reap_direct_gets() {
  return gpu_direct_.reap_gets(lost_, [this](const GpuDirectTransfers::Get& get) {
    if (get.failed) {
      lose();
    }
    return finish(get.origin, CommandKind::Get, get.answers);
  });
}

bool Outgoing::finish(const CommandOrigin& origin, CommandKind kind, bool answers) {
  if (!context_.rings[origin.ring].finish(origin.position, answers, 0)) {
    return false;
  }
  if (lost_) {
    context_.on_failed(peer_, kind, Status::PeerLost);
  }
  return true;
}

// ---- Posting.

bool Outgoing::post() {
  const std::uint64_t before = posted_;
  bool has_large = false;
  while (posted_ < opened_) {
    Slot& slot = slots_[slot_of(posted_)];
    if (!context_.copier.is_done(Direction::FromGpu, slot.ticket)) {
      break;
    }
    if (posted_ + 1 == opened_) {
      is_open_ = false;
    }
    const Status status = post_parcel(posted_);
    if (status == Status::Again) {
      break;
    }
    ++posted_;
    if (status != Status::Ok) {
      lose();
      return true;
    }
    has_large = has_large || !slot.copied;
  }
  if (gpu_direct_.wants_flush() || has_large) {
    context_.transport.flush(
        peer_);  // otherwise the transport would hold the slot long after the credit
  }
  return posted_ != before;
}

Status Outgoing::post_parcel(std::uint64_t parcel) {
  const std::uint32_t index = slot_of(parcel);
  const std::size_t bytes = ParcelView(memory_of(parcel)).header().bytes;
  Slot& slot = slots_[index];
  slot.copied = bytes <= kCopiedBytesMax;
  return context_.transport.post(
      {.kind = transport::OperationKind::PutSignal,
       .copy_source = slot.copied,
       .peer = peer_,
       .remote = context_.in_staging(context_.layout.receive_slot(context_.me, index)),
       .local = memory_of(parcel),
       .bytes = bytes,
       .update = {.code = transport::AtomicCode::Set,
                  .element_bytes = 8,
                  .word = context_.in_staging(context_.layout.arrival(context_.me, index)),
                  .operand = parcel + 1},
       .counter = slot.copied ? loose_counter() : &counter_of(parcel)});
}

// ---- Loss of the peer, and shutdown.

void Outgoing::blame(std::string_view fault) {
  context_.transport.blame(peer_, fault);
  lose();
}

void Outgoing::lose() {
  if (!lost_) {
    lost_ = true;
    is_open_ = false;
    context_.on_failed(peer_, CommandKind::Nop, Status::PeerLost);
  }
}

// True if anything was completed. Slots whose last reply has not been read yet are left for the next call.
bool Outgoing::fail_queued() {
  bool moved = false;
  while (!answers_.empty()) {
    answers_.pop();
  }
  for (Request& request : requests_) {
    if (request.kind != CommandKind::Nop && finish(request.origin, request.kind, request.answers)) {
      end_request(request);
      moved = true;
    }
  }
  while (!queue_.empty()) {
    const Queued& queued = queue_.front();
    if (!finish(queued.origin, queued.command.kind,
                (queued.command.flags & device::kReplyWanted) != 0)) {
      break;
    }
    queue_.pop();
    moved = true;
  }
  return moved;
}

bool Outgoing::is_idle() const {
  return queue_.empty() && answers_.empty() && free_requests_.size() == requests_.size() &&
         finished_ == opened_ && !gpu_direct_.has_gets();
}

bool Outgoing::is_quiet() const {
  for (const OperationCounter& counter : counters_) {
    if (!counter.is_idle()) {
      return false;
    }
  }
  return gpu_direct_.is_quiet();
}

}  // namespace weft::proxy
