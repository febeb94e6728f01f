#include "src/proxy/parcel_window.hpp"

#include <algorithm>

namespace weft::proxy {

using transport::OperationCounter;

namespace {

// The transport copies parcels of up to this size when they are posted, so their slots are free
// again as soon as the peer's credit arrives.
constexpr std::size_t kCopiedBytesMax = 1024;

// A put does not start in a parcel with less room than this for it.
constexpr std::size_t kChunkBytesMin = 4096;

}  // namespace

ParcelWindow::ParcelWindow(EngineContext& context, Pe peer)
    : context_(context),
      peer_(peer),
      slots_(context.layout.slots()),
      counter_memory_(std::make_unique<std::vector<OperationCounter>>(1 + context.layout.slots())),
      counters_(*counter_memory_) {}

ParcelWindow::~ParcelWindow() {
  if (!is_quiet()) {
    // The transport will still write to the counters, at an unknown time and perhaps after the end
    // of this object. So it takes them over.
    context_.transport.keep(std::move(counter_memory_));
  }
}

std::uint32_t ParcelWindow::slot_of(std::uint64_t parcel) const {
  return static_cast<std::uint32_t>(parcel % slots_.size());
}

std::byte* ParcelWindow::memory_of(std::uint64_t parcel) const {
  return context_.staging.base + context_.layout.send_slot(peer_, slot_of(parcel));
}

OperationCounter& ParcelWindow::counter_of(std::uint64_t parcel) const {
  return counters_[1 + slot_of(parcel)];
}

ParcelView ParcelWindow::parcel(std::uint64_t number) const {
  return ParcelView(memory_of(number));
}

// ---- Filling.

bool ParcelWindow::open() {
  if (opened_ - freed_ == slots_.size()) {
    return false;
  }
  ParcelView(memory_of(opened_)).header() = {.sequence = opened_, .bytes = sizeof(ParcelHeader)};
  slots_[slot_of(opened_)] = {};
  open_bytes_ = sizeof(ParcelHeader);
  is_open_ = true;
  ++opened_;
  return true;
}

Record* ParcelWindow::append(RecordKind kind, std::size_t payload_bytes) {
  const std::size_t bytes = sizeof(Record) + padded_payload(payload_bytes);
  if (is_open_ && open_bytes_ + bytes > context_.layout.slot_bytes()) {
    is_open_ = false;
  }
  if (!is_open_ && !open()) {
    return nullptr;
  }
  const ParcelView view(memory_of(opened_ - 1));
  Record& record = view.record(open_bytes_);
  record = {.kind = kind, .payload_bytes = static_cast<std::uint32_t>(payload_bytes)};
  payload_ = view.payload(open_bytes_);
  open_bytes_ += bytes;
  view.header().bytes = static_cast<std::uint32_t>(open_bytes_);
  view.header().answer_count += is_answer(kind) ? 1 : 0;
  ++record_count_;
  return &record;
}

std::size_t ParcelWindow::chunk_bytes(std::uint64_t bytes_left) const {
  const std::size_t least = sizeof(Record) + std::min<std::uint64_t>(bytes_left, kChunkBytesMin);
  std::size_t room = is_open_ ? context_.layout.slot_bytes() - open_bytes_ : 0;
  if (room < least) {
    room = context_.layout.slot_bytes() - sizeof(ParcelHeader);
  }
  return std::min<std::uint64_t>(bytes_left, (room - sizeof(Record)) / 16 * 16);
}

void ParcelWindow::copy_in(std::uint64_t source, std::size_t bytes) {
  if (bytes > 0) {
    slots_[slot_of(opened_ - 1)].ticket = context_.copier.copy(
        CopyDirection::FromGpu, payload_, reinterpret_cast<const void*>(source), bytes);
  }
}

// ---- Posting.

ParcelWindow::Posted ParcelWindow::post() {
  Posted posted;
  while (posted_ < opened_) {
    const Slot& slot = slots_[slot_of(posted_)];
    if (!context_.copier.is_done(CopyDirection::FromGpu, slot.ticket)) {
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
    posted.has_moved = true;
    if (status != Status::Ok) {
      posted.has_failed = true;
      break;
    }
    posted.has_large = posted.has_large || !slot.copied;
  }
  return posted;
}

Status ParcelWindow::post_parcel(std::uint64_t parcel) {
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

// ---- Parcels that the target has applied.

void ParcelWindow::free_slots() {
  while (freed_ < finished_ && (slots_[slot_of(freed_)].copied || counter_of(freed_).is_idle())) {
    ++freed_;
  }
}

bool ParcelWindow::is_quiet() const {
  return std::ranges::all_of(counters_, &OperationCounter::is_idle);
}

}  // namespace weft::proxy
