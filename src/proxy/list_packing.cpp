// CommandPacker's part for lists (putv): segments that the NICs can transfer directly between the
// GPUs are posted as one put, all others become records in parcels.
#include <array>
#include <cstring>
#include <optional>

#include "src/proxy/command_packer.hpp"

namespace weft::proxy {
namespace {

using device::Command;

bool has_update(const Command& command) {
  return (command.flags & device::kSignalAfter) != 0;
}

// The next entry after the current one of `list` that is sent in records.
std::optional<ListReader> next_staged(ListReader list, std::uint32_t direct) {
  while (list.next()) {
    if (list.entry().bytes != 0 && (direct >> list.number() & 1U) == 0) {
      return list;
    }
  }
  return std::nullopt;
}

}  // namespace

// The record that announces the direct put comes last, so that the others need not wait for its
// data.
Packed CommandPacker::pack_list(QueuedCommand& queued) {
  if (!queued.list.is_posted) {
    const Status status = post_list(queued);
    if (status != Status::Ok) {
      return status == Status::Again ? Packed::Part : Packed::Failed;
    }
    queued.list.is_posted = true;
  }
  const bool has_end = queued.list.direct != 0 || has_update(queued.command);
  auto list = next_staged(ListReader(queued.command, queued.payload.data()), queued.list.direct);
  const bool is_empty = !list.has_value();
  while (list) {
    const auto next = next_staged(*list, queued.list.direct);
    if (list->number() >= queued.list.entries) {
      if (!pack_entry(queued, *list, !next && !has_end)) {
        return Packed::Part;
      }
      queued.list.entries = list->number() + 1;
      queued.packed_bytes = 0;
    }
    list = next;
  }
  return (has_end || is_empty) && !end_list(queued) ? Packed::Part : Packed::All;
}

// After a fence it waits as pack_direct does.
Status CommandPacker::post_list(QueuedCommand& queued) {
  std::array<GpuDirectTransfers::Range, device::kListEntriesMax> ranges;
  std::size_t count = 0;
  std::uint32_t direct = 0;
  ListReader list(queued.command, queued.payload.data());
  const std::size_t most = gpu_direct_.gathers() ? ranges.size() : 1;
  while (list.next() && count < most) {
    const auto& [dest, source, bytes] = list.entry();
    if (!list.is_carried() && gpu_direct_.takes({dest, source, bytes})) {
      direct |= 1U << list.number();
      ranges[count++] = {dest, source, bytes};
    }
  }
  if (count == 0) {
    return Status::Ok;
  }
  if (parcels_.finished() < fence_) {
    return Status::Again;
  }
  const Status status = gpu_direct_.post_put(std::span(ranges).first(count));
  queued.list.direct = status == Status::Ok ? direct : 0;
  return status;
}

// `is_end`: the last record of the command.
bool CommandPacker::pack_entry(QueuedCommand& queued, const ListReader& list, bool is_end) {
  const auto& [dest, source, bytes] = list.entry();
  const bool is_small = bytes <= device::kPayloadBytes;
  while (queued.packed_bytes < bytes) {
    const std::uint64_t left = bytes - queued.packed_bytes;
    const std::size_t part = is_small ? left : parcels_.chunk_bytes(left);
    Record* record =
        append_for(queued, is_small ? RecordKind::SmallPut : RecordKind::BulkPut, part);
    if (record == nullptr) {
      return false;
    }
    queued.list.has_records = true;
    PutRecord{.dest_offset = dest + queued.packed_bytes}.write_to(*record);
    if (list.is_carried()) {
      std::memcpy(parcels_.payload(), list.data(), part);
    } else {
      parcels_.copy_in(source + queued.packed_bytes, part);
    }
    queued.packed_bytes += part;
    if (is_end && queued.packed_bytes == bytes) {
      end_command(*record, queued.command);
    }
  }
  return true;
}

// The last record: it announces the direct put and carries the signal. For a list without bytes and
// without a signal it has no effect, and only completes the command.
bool CommandPacker::end_list(QueuedCommand& queued) {
  const bool is_direct = queued.list.direct != 0;
  const bool updates = has_update(queued.command);
  Record* record = append_for(queued,
                              is_direct ? RecordKind::DirectPut
                              : updates ? RecordKind::Atomic
                                        : RecordKind::SmallPut,
                              0);
  if (record == nullptr) {
    return false;
  }
  if (updates) {
    set_update(*record, device::WordUpdate::from(queued.command));
  }
  if (is_direct) {
    record->flags |= updates ? kUpdates : 0;
    DirectPutRecord{.put_number = gpu_direct_.posted() - 1}.write_to(*record);
  }
  end_command(*record, queued.command);
  return true;
}

}  // namespace weft::proxy
