// Packs commands and answers into records of a parcel.
#include <algorithm>
#include <cstring>

#include "src/base/error.hpp"
#include "src/proxy/outgoing.hpp"

namespace weft::proxy {
namespace {

using device::Command;
using device::CommandKind;

// A put does not start in a parcel with less room than this for it.
constexpr std::size_t kChunkBytesMin = 4096;

bool wants_reply(const Command& command) {
  return (command.flags & device::kReplyWanted) != 0;
}

bool is_small(std::uint64_t bytes) {
  return bytes <= device::kPayloadBytes;
}

void set_update(Record& record, const Command& command) {
  record.op = command.op;
  record.element_bytes = command.element_bytes;
  record.word = command.word;
  record.operand = command.operand;
  record.compare = command.compare;
}

void end_command(Record& record, const Command& command) {
  record.flags |= kLastOfCommand;
  if (wants_reply(command)) {
    record.flags |= kAnswers;
  }
}

}  // namespace

bool Outgoing::pack() {
  const std::uint64_t before = packed_records_;
  while (!answers_.empty() && pack_answer(answers_.front())) {
    answers_.pop();
    --expected_answers_;
  }
  const std::size_t queued = queue_.size();
  while (!queue_.empty() && pack_command(queue_.front())) {
    queue_.pop();
  }
  return packed_records_ != before || queue_.size() != queued;
}

// False: there is no room now; the next call continues where it stopped.
bool Outgoing::pack_command(Queued& queued) {
  if (!queued.begun) {
    queued.begun = true;
    fence_ = (queued.command.flags & device::kFenceBefore) != 0 ? opened_ : fence_;
  }
  if (gpu_direct_.takes(queued.command)) {
    return queued.command.kind == CommandKind::Get ? start_direct_get(queued)
                                                   : pack_direct_put(queued);
  }
  switch (queued.command.kind) {
    case CommandKind::Put:
    case CommandKind::PutSignal:
      return is_small(queued.command.bytes) ? pack_small_put(queued) : pack_put(queued);
    case CommandKind::Signal:
    case CommandKind::Atomic:
      return pack_atomic(queued);
    case CommandKind::Get:
      return pack_get(queued);
    case CommandKind::Nop:
    case CommandKind::Fence:
      return true;  // never queued
  }
  return true;
}

bool Outgoing::pack_small_put(const Queued& queued) {
  const Command& command = queued.command;
  const bool has_signal = command.kind == CommandKind::PutSignal;
  Record* record =
      append_for(queued, has_signal ? RecordKind::PutSignal : RecordKind::SmallPut, command.bytes);
  if (record == nullptr) {
    return false;
  }
  record->dest = command.dest;
  if (has_signal) {
    set_update(*record, command);
  }
  end_command(*record, command);
  if ((command.flags & device::kPayloadInSlot) != 0) {
    std::memcpy(payload_, queued.payload.data(), command.bytes);
  } else if (command.bytes > 0) {
    copy_in(command.source, command.bytes);
  }
  return true;
}

bool Outgoing::pack_put(Queued& queued) {
  const Command& command = queued.command;
  while (queued.packed_bytes < command.bytes) {
    const std::size_t bytes = chunk_bytes(command.bytes - queued.packed_bytes);
    Record* record = append_for(queued, RecordKind::BulkPut, bytes);
    if (record == nullptr) {
      return false;
    }
    record->dest = command.dest + queued.packed_bytes;
    copy_in(command.source + queued.packed_bytes, bytes);
    queued.packed_bytes += bytes;
    if (queued.packed_bytes == command.bytes && command.kind == CommandKind::Put) {
      end_command(*record, command);
    }
  }
  if (command.kind == CommandKind::Put) {
    return true;
  }
  Record* record = append_for(queued, RecordKind::Atomic, 0);
  if (record == nullptr) {
    return false;
  }
  set_update(*record, command);
  end_command(*record, command);
  return true;
}

// NICs do not know the order of streams. So a put after a fence is not even posted before the peer has applied
// everything before the fence. All of that is in parcels below fence_.
bool Outgoing::pack_direct_put(Queued& queued) {
  const Command& command = queued.command;
  if (finished_ < fence_) {
    return false;
  }
  if (queued.packed_bytes == 0) {
    const Status status = gpu_direct_.post_put(command);
    if (status != Status::Ok) {
      if (status != Status::Again) {
        lose();
      }
      return false;
    }
    queued.packed_bytes = command.bytes;
  }
  Record* record = append_for(queued, RecordKind::DirectPut, 0);
  if (record == nullptr) {
    return false;
  }
  if (command.kind == CommandKind::PutSignal) {
    set_update(*record, command);
    record->flags |= kUpdates;
  }
  record->dest = gpu_direct_.posted() - 1;
  end_command(*record, command);
  return true;
}

bool Outgoing::start_direct_get(const Queued& queued) {
  if (finished_ < fence_) {
    return false;
  }
  const Status status = gpu_direct_.post_get(
      queued.command, {.origin = queued.origin, .answers = wants_reply(queued.command)});
  if (status != Status::Ok && status != Status::Again) {
    lose();
  }
  return status == Status::Ok;
}

bool Outgoing::pack_atomic(const Queued& queued) {
  const bool fetches = queued.command.kind == CommandKind::Atomic && wants_reply(queued.command);
  if (fetches && free_requests_.empty()) {
    return false;
  }
  Record* record = append_for(queued, RecordKind::Atomic, 0);
  if (record == nullptr) {
    return false;
  }
  set_update(*record, queued.command);
  if (fetches) {
    record->flags |= kFetches;
    record->request = take_request(queued);
  } else {
    end_command(*record, queued.command);
  }
  return true;
}

bool Outgoing::pack_get(const Queued& queued) {
  if (free_requests_.empty()) {
    return false;
  }
  Record* record = append_for(queued, RecordKind::Get, 0);
  if (record == nullptr) {
    return false;
  }
  record->dest = queued.command.source;
  record->bytes = queued.command.bytes;
  record->operand = queued.command.dest;
  record->request = take_request(queued);
  return true;
}

bool Outgoing::pack_answer(Answer& answer) {
  const Record asked = answer.asked;
  if (asked.kind == RecordKind::FetchReply) {
    Record* record = append(RecordKind::FetchReply, 0);
    if (record == nullptr) {
      return false;
    }
    record->request = asked.request;
    record->operand = asked.operand;
    return true;
  }
  const RecordKind kind = is_small(asked.bytes) ? RecordKind::GetReply : RecordKind::GetReplyBulk;
  do {
    const std::size_t bytes = chunk_bytes(asked.bytes - answer.packed_bytes);
    Record* record = append(kind, bytes);
    if (record == nullptr) {
      return false;
    }
    record->request = asked.request;
    record->dest = asked.operand + answer.packed_bytes;
    copy_in(reinterpret_cast<std::uint64_t>(context_.heap.base) + asked.dest + answer.packed_bytes,
            bytes);
    answer.packed_bytes += bytes;
  } while (answer.packed_bytes < asked.bytes);
  return true;
}

std::uint32_t Outgoing::take_request(const Queued& queued) {
  const Command& command = queued.command;
  const std::uint64_t bytes = command.kind == CommandKind::Get ? command.bytes : 0;
  const std::uint32_t index = free_requests_.back();
  free_requests_.pop_back();
  requests_[index] = {.origin = queued.origin,
                      .dest = command.dest,
                      .bytes = bytes,
                      .bytes_left = bytes,
                      .use = (requests_[index].use + 1) % (UINT32_MAX / kRequestsMax),
                      .kind = command.kind,
                      .answers = wants_reply(command)};
  return requests_[index].use * kRequestsMax + index;
}

// ---- Space in parcels.

bool Outgoing::open() {
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

// Returns the next record, with its payload at payload_; null if there is no free slot.
Record* Outgoing::append(RecordKind kind, std::size_t payload_bytes) {
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
  ++packed_records_;
  return &record;
}

Record* Outgoing::append_for(const Queued& queued, RecordKind kind, std::size_t bytes) {
  Record* record = append(kind, bytes);
  if (record != nullptr) {
    record->ring = queued.origin.ring;
    record->position = queued.origin.position;
    const bool is_first =
        queued.packed_bytes == 0;  // the following records are after the fence as well
    record->flags = is_first && (queued.command.flags & device::kFenceBefore) != 0 ? kFenced : 0;
  }
  return record;
}

std::size_t Outgoing::chunk_bytes(std::uint64_t bytes_left) const {
  const std::size_t least = sizeof(Record) + std::min<std::uint64_t>(bytes_left, kChunkBytesMin);
  std::size_t room = is_open_ ? context_.layout.slot_bytes() - open_bytes_ : 0;
  if (room < least) {
    room = context_.layout.slot_bytes() - sizeof(ParcelHeader);
  }
  return std::min<std::uint64_t>(bytes_left, (room - sizeof(Record)) / 16 * 16);
}

void Outgoing::copy_in(std::uint64_t source, std::size_t bytes) {
  if (bytes > 0) {
    slots_[slot_of(opened_ - 1)].ticket = context_.copier.copy(
        Direction::FromGpu, payload_, reinterpret_cast<const void*>(source), bytes);
  }
}

}  // namespace weft::proxy
