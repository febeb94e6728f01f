// Packs commands and answers into records of a stream's parcels, or hands a command to the NICs if
// they reach both GPUs. A command that finds no room keeps what was packed of it, and continues
// with the next call.
//
// Threads: only the proxy's.
#pragma once

#include <array>
#include <cstddef>
#include <cstdint>

#include "src/proxy/context.hpp"
#include "src/proxy/gpu_direct_transfers.hpp"
#include "src/proxy/list_reader.hpp"
#include "src/proxy/parcel.hpp"
#include "src/proxy/parcel_window.hpp"
#include "src/proxy/request_table.hpp"

namespace weft::proxy {

// How much of a PutList is packed.
struct ListProgress {
  std::uint32_t entries = 0;
  std::uint32_t direct = 0;  // those that the NICs take, one bit each
  bool is_posted = false;    // those are on their way
  bool has_records = false;
};

struct QueuedCommand {
  device::Command command;
  CommandOrigin origin;
  std::uint64_t packed_bytes = 0;  // of a bulk put
  bool begun = false;              // its fence has been handled
  ListProgress list;
  std::array<std::byte, device::kPayloadBytes> payload;
};

struct QueuedAnswer {
  Record asked;                    // a Get, as the peer asks it, or a FetchReply as it goes back
  std::uint64_t packed_bytes = 0;  // of a get
};

enum class Packed : std::uint8_t {
  All,
  Part,    // there is no room now
  Failed,  // the transport could not post it: the peer is lost
};

// The last record of a command.
void end_command(Record& record, const device::Command& command);

class CommandPacker {
 public:
  // All outlive it.
  CommandPacker(EngineContext& context,
                ParcelWindow& parcels,
                RequestTable& requests,
                GpuDirectTransfers& gpu_direct)
      : context_(context), parcels_(parcels), requests_(requests), gpu_direct_(gpu_direct) {}

  [[nodiscard]] Packed pack(QueuedCommand& queued);
  // False: there is no room now.
  [[nodiscard]] bool pack(QueuedAnswer& answer);

 private:
  [[nodiscard]] Packed pack_direct(QueuedCommand& queued);
  [[nodiscard]] bool pack_put(QueuedCommand& queued);
  [[nodiscard]] Packed pack_direct_put(QueuedCommand& queued);
  [[nodiscard]] Packed start_direct_get(const QueuedCommand& queued);
  [[nodiscard]] Packed pack_list(QueuedCommand& queued);
  [[nodiscard]] Status post_list(QueuedCommand& queued);
  [[nodiscard]] bool pack_entry(QueuedCommand& queued, const ListReader& list, bool is_end);
  [[nodiscard]] bool end_list(QueuedCommand& queued);
  [[nodiscard]] bool pack_small_put(const QueuedCommand& queued);
  [[nodiscard]] bool pack_atomic(const QueuedCommand& queued);
  [[nodiscard]] bool pack_get(const QueuedCommand& queued);
  [[nodiscard]] bool pack_in_parcels(QueuedCommand& queued);
  [[nodiscard]] Record* append_for(const QueuedCommand& queued, RecordKind kind, std::size_t bytes);

  EngineContext& context_;
  ParcelWindow& parcels_;
  RequestTable& requests_;
  GpuDirectTransfers& gpu_direct_;
  std::uint64_t fence_ = 0;  // direct puts and gets wait until all parcels below this are finished
};

}  // namespace weft::proxy
