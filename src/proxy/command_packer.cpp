#include "src/proxy/command_packer.hpp"

#include <cstring>

namespace weft::proxy {
namespace {

using device::Command;
using device::CommandKind;
using device::GetCommand;
using device::PutCommand;
using device::WordUpdate;

bool wants_reply(const Command& command) {
  return (command.flags & device::kReplyWanted) != 0;
}

bool is_small(std::uint64_t bytes) {
  return bytes <= device::kPayloadBytes;
}

}  // namespace

void end_command(Record& record, const Command& command) {
  record.flags |= kLastOfCommand;
  if (wants_reply(command)) {
    record.flags |= kAnswers;
  }
}

Packed CommandPacker::pack(QueuedCommand& queued) {
  if (!queued.begun) {
    queued.begun = true;
    fence_ = (queued.command.flags & device::kFenceBefore) != 0 ? parcels_.opened() : fence_;
  }
  if (queued.command.kind == CommandKind::PutList) {
    return pack_list(queued);
  }
  if (gpu_direct_.takes(queued.command)) {
    return pack_direct(queued);
  }
  return pack_in_parcels(queued) ? Packed::All : Packed::Part;
}

bool CommandPacker::pack_in_parcels(QueuedCommand& queued) {
  switch (queued.command.kind) {
    case CommandKind::Put:
    case CommandKind::PutSignal:
      return is_small(PutCommand::from(queued.command).bytes) ? pack_small_put(queued)
                                                              : pack_put(queued);
    case CommandKind::Signal:
    case CommandKind::Atomic:
      return pack_atomic(queued);
    case CommandKind::Get:
      return pack_get(queued);
    case CommandKind::Nop:
    case CommandKind::Fence:
    case CommandKind::Await:
      return true;  // never queued
    case CommandKind::PutList:
      return true;  // see pack_list
  }
  return true;
}

bool CommandPacker::pack_small_put(const QueuedCommand& queued) {
  const Command& command = queued.command;
  const PutCommand put = PutCommand::from(command);
  const bool has_signal = command.kind == CommandKind::PutSignal;
  Record* record =
      append_for(queued, has_signal ? RecordKind::PutSignal : RecordKind::SmallPut, put.bytes);
  if (record == nullptr) {
    return false;
  }
  PutRecord{.dest_offset = put.dest_offset}.write_to(*record);
  if (has_signal) {
    set_update(*record, WordUpdate::from(command));
  }
  end_command(*record, command);
  if ((command.flags & device::kPayloadInSlot) != 0) {
    std::memcpy(parcels_.payload(), queued.payload.data(), put.bytes);
  } else if (put.bytes > 0) {
    parcels_.copy_in(put.source_address, put.bytes);
  }
  return true;
}

bool CommandPacker::pack_put(QueuedCommand& queued) {
  const Command& command = queued.command;
  const PutCommand put = PutCommand::from(command);
  while (queued.packed_bytes < put.bytes) {
    const std::size_t bytes = parcels_.chunk_bytes(put.bytes - queued.packed_bytes);
    Record* record = append_for(queued, RecordKind::BulkPut, bytes);
    if (record == nullptr) {
      return false;
    }
    PutRecord{.dest_offset = put.dest_offset + queued.packed_bytes}.write_to(*record);
    parcels_.copy_in(put.source_address + queued.packed_bytes, bytes);
    queued.packed_bytes += bytes;
    if (queued.packed_bytes == put.bytes && command.kind == CommandKind::Put) {
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
  set_update(*record, WordUpdate::from(command));
  end_command(*record, command);
  return true;
}

// What a NIC writes directly is not ordered with the stream's parcels. So a direct put after a
// fence is posted only when the peer has applied everything before the fence, which is in the
// parcels with numbers below fence_.
Packed CommandPacker::pack_direct(QueuedCommand& queued) {
  if (parcels_.finished() < fence_) {
    return Packed::Part;
  }
  return queued.command.kind == CommandKind::Get ? start_direct_get(queued)
                                                 : pack_direct_put(queued);
}

Packed CommandPacker::pack_direct_put(QueuedCommand& queued) {
  const Command& command = queued.command;
  if (queued.packed_bytes == 0) {
    const PutCommand put = PutCommand::from(command);
    const GpuDirectTransfers::Range range{put.dest_offset, put.source_address, put.bytes};
    const Status status = gpu_direct_.post_put({&range, 1});
    if (status != Status::Ok) {
      return status == Status::Again ? Packed::Part : Packed::Failed;
    }
    queued.packed_bytes = put.bytes;
  }
  Record* record = append_for(queued, RecordKind::DirectPut, 0);
  if (record == nullptr) {
    return Packed::Part;
  }
  if (command.kind == CommandKind::PutSignal) {
    set_update(*record, WordUpdate::from(command));
    record->flags |= kUpdates;
  }
  DirectPutRecord{.put_number = gpu_direct_.posted() - 1}.write_to(*record);
  end_command(*record, command);
  return Packed::All;
}

Packed CommandPacker::start_direct_get(const QueuedCommand& queued) {
  const Status status = gpu_direct_.post_get(
      queued.command, {.origin = queued.origin, .answers = wants_reply(queued.command)});
  if (status == Status::Ok) {
    return Packed::All;
  }
  return status == Status::Again ? Packed::Part : Packed::Failed;
}

bool CommandPacker::pack_atomic(const QueuedCommand& queued) {
  const bool fetches = queued.command.kind == CommandKind::Atomic && wants_reply(queued.command);
  if (fetches && requests_.is_full()) {
    return false;
  }
  Record* record = append_for(queued, RecordKind::Atomic, 0);
  if (record == nullptr) {
    return false;
  }
  set_update(*record, WordUpdate::from(queued.command));
  if (fetches) {
    record->flags |= kFetches;
    record->request = requests_.take(queued.command, queued.origin);
  } else {
    end_command(*record, queued.command);
  }
  return true;
}

bool CommandPacker::pack_get(const QueuedCommand& queued) {
  if (requests_.is_full()) {
    return false;
  }
  Record* record = append_for(queued, RecordKind::Get, 0);
  if (record == nullptr) {
    return false;
  }
  const GetCommand get = GetCommand::from(queued.command);
  GetRecord{
      .source_offset = get.source_offset, .requester_address = get.dest_address, .bytes = get.bytes}
      .write_to(*record);
  record->request = requests_.take(queued.command, queued.origin);
  return true;
}

bool CommandPacker::pack(QueuedAnswer& answer) {
  const Record asked = answer.asked;
  if (asked.kind == RecordKind::FetchReply) {
    Record* record = parcels_.append(RecordKind::FetchReply, 0);
    if (record == nullptr) {
      return false;
    }
    record->request = asked.request;
    FetchReplyRecord::from(asked).write_to(*record);
    return true;
  }
  const GetRecord get = GetRecord::from(asked);
  const RecordKind kind = is_small(get.bytes) ? RecordKind::GetReply : RecordKind::GetReplyBulk;
  do {
    const std::size_t bytes = parcels_.chunk_bytes(get.bytes - answer.packed_bytes);
    Record* record = parcels_.append(kind, bytes);
    if (record == nullptr) {
      return false;
    }
    record->request = asked.request;
    GetReplyRecord{.requester_address = get.requester_address + answer.packed_bytes}.write_to(
        *record);
    parcels_.copy_in(context_.heap_address() + get.source_offset + answer.packed_bytes, bytes);
    answer.packed_bytes += bytes;
  } while (answer.packed_bytes < get.bytes);
  return true;
}

Record* CommandPacker::append_for(const QueuedCommand& queued, RecordKind kind, std::size_t bytes) {
  Record* record = parcels_.append(kind, bytes);
  if (record != nullptr) {
    record->ring = queued.origin.ring;
    record->position = queued.origin.position;
    // The following records are after the fence as well.
    const bool is_first = queued.packed_bytes == 0 && !queued.list.has_records;
    record->flags = is_first && (queued.command.flags & device::kFenceBefore) != 0 ? kFenced : 0;
  }
  return record;
}

}  // namespace weft::proxy
