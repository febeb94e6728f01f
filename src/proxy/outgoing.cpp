#include "src/proxy/outgoing.hpp"

#include <algorithm>

#include "src/base/atomic.hpp"
#include "src/base/error.hpp"

namespace weft::proxy {

using device::Command;
using device::CommandKind;

namespace {

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

Outgoing::Outgoing(EngineContext& context, Pe peer)
    : context_(context),
      peer_(peer),
      queue_(context.limits.commands),
      answers_(context.limits.requests),
      requests_(context.limits.requests),
      parcels_(context, peer),
      gpu_direct_(context, peer),
      packer_(context, parcels_, requests_, gpu_direct_) {}

void Outgoing::enqueue(const Command& command,
                       const std::byte* payload,
                       const CommandOrigin& origin) {
  QueuedCommand& queued = queue_.push();
  queued.command = command;
  queued.origin = origin;
  queued.packed_bytes = 0;
  queued.begun = false;
  queued.list = {};
  is_unfenced_ = true;
  context_.with_work.add(peer_);
  context_.with_unfenced.add(peer_);
  if (fence_next_) {
    queued.command.flags |= device::kFenceBefore;
    fence_next_ = false;
  }
  if ((command.flags & device::kPayloadInSlot) != 0) {
    std::copy_n(payload, device::payload_bytes(command), queued.payload.begin());
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
    context_.with_work.add(peer_);
  }
}

void Outgoing::answer_fetch(std::uint32_t request, std::uint64_t value) {
  if (!lost_) {
    Record reply{.kind = RecordKind::FetchReply, .request = request};
    FetchReplyRecord{.old_value = value}.write_to(reply);
    answers_.push() = {.asked = reply, .packed_bytes = 0};
    context_.with_work.add(peer_);
  }
}

bool Outgoing::on_answer(const Record& reply) {
  Request* request = requests_.find(reply.request);
  if (request == nullptr) {
    return true;  // completed meanwhile, because the peer was considered lost
  }
  if (request->bytes_left > reply.payload_bytes) {
    request->bytes_left -= reply.payload_bytes;
    return true;
  }
  const std::uint64_t value =
      reply.kind == RecordKind::FetchReply ? FetchReplyRecord::from(reply).old_value : 0;
  if (!context_.rings[request->origin.ring].finish(request->origin.position, request->answers,
                                                   value)) {
    return false;
  }
  requests_.end(*request);
  return true;
}

bool Outgoing::pump() {
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
  // SYNC atomic-update (pairs with src/transport/atomic_update.hpp): the number of parcels that the
  // peer has applied.
  const std::uint64_t credit =
      AtomicRef(context_.word(context_.layout.credit(peer_))).load(std::memory_order_acquire);
  if (!lost_ && credit > parcels_.posted()) {
    blame("it has applied parcels of GPU commands that were never sent to it");
  }
  const std::uint64_t before = parcels_.finished();
  const std::uint64_t limit = lost_ ? parcels_.opened() : credit;
  while (parcels_.finished() < limit && finish_parcel()) {
    parcels_.finish();
    finish_offset_ = 0;
  }
  parcels_.free_slots();
  return parcels_.finished() != before;
}

// Our copy of the parcel shows which commands end in it. False: retry later from where it stopped.
bool Outgoing::finish_parcel() {
  const ParcelView view = parcels_.parcel(parcels_.finished());
  if (finish_offset_ == 0) {
    finish_offset_ = sizeof(ParcelHeader);
  }
  while (finish_offset_ < view.header().bytes) {
    const Record& record = view.record(finish_offset_);
    if (record.kind == RecordKind::DirectPut &&
        !gpu_direct_.finish_put(DirectPutRecord::from(record).put_number, lost_)) {
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

// ---- Packing and posting.

bool Outgoing::pack() {
  const std::uint64_t before = parcels_.record_count();
  while (!answers_.empty() && packer_.pack(answers_.front())) {
    answers_.pop();
    --expected_answers_;
  }
  const std::size_t queued = queue_.size();
  while (!queue_.empty()) {
    const Packed packed = packer_.pack(queue_.front());
    if (packed == Packed::Failed) {
      lose();
    }
    if (packed != Packed::All) {
      break;
    }
    queue_.pop();
  }
  return parcels_.record_count() != before || queue_.size() != queued;
}

bool Outgoing::post() {
  const ParcelWindow::Posted posted = parcels_.post();
  if (posted.has_failed) {
    lose();
    return true;
  }
  if (gpu_direct_.wants_flush() || posted.has_large) {
    context_.transport.flush(
        peer_);  // otherwise the transport would hold the slot long after the credit
  }
  return posted.has_moved;
}

// ---- Loss of the peer, and shutdown.

void Outgoing::blame(std::string_view fault) {
  context_.transport.blame(peer_, fault);
  lose();
}

void Outgoing::lose() {
  if (!lost_) {
    lost_ = true;
    parcels_.close();
    context_.with_work.add(peer_);
    context_.on_failed(peer_, CommandKind::Nop, Status::PeerLost);
  }
}

// True if anything was completed. Slots whose last reply has not been read yet are left for the
// next call.
bool Outgoing::fail_queued() {
  bool moved = false;
  while (!answers_.empty()) {
    answers_.pop();
  }
  for (Request& request : requests_.entries()) {
    if (request.kind != CommandKind::Nop && finish(request.origin, request.kind, request.answers)) {
      requests_.end(request);
      moved = true;
    }
  }
  while (!queue_.empty()) {
    const QueuedCommand& queued = queue_.front();
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
  return queue_.empty() && answers_.empty() && requests_.empty() &&
         parcels_.finished() == parcels_.opened() && !gpu_direct_.has_gets();
}

bool Outgoing::is_quiet() const {
  return parcels_.is_quiet() && gpu_direct_.is_quiet();
}

}  // namespace weft::proxy
