// The protocol between two proxies: a parcel is a header and records, some followed by data, in one
// staging slot. Defined only here; both sides use these structs. Little-endian hosts only, as for
// the rails.
//
// A stream of parcels is ordered: the target handles the records of one sender one after the other.
// Their effects become visible in that order as far as OpenSHMEM requires it: small operations
// (inbox) follow everything before them; bulk data follows bulk data, and follows small operations
// only after a fence.
#pragma once

#include <weft/device/command_views.hpp>

#include <array>
#include <cstddef>
#include <cstdint>
#include <span>
#include <type_traits>

namespace weft::proxy {

// With the views that name each kind's fields.
enum class RecordKind : std::uint8_t {
  SmallPut,      // PutRecord: payload, through the inbox
  PutSignal,     // PutRecord, update: small payload, then the atomic; one inbox command
  Atomic,        // update: also a signal; with kFetches a FetchReply returns the old value
  BulkPut,       // PutRecord: payload, by the copier
  Get,           // GetRecord: a request; the data returns in GetReply records
  GetReply,      // GetReplyRecord: payload
  GetReplyBulk,  // the same, by the copier
  FetchReply,    // FetchReplyRecord
  // DirectPutRecord: the NICs have taken the data to the GPU; with kUpdates then an update.
  DirectPut,
};

constexpr bool is_answer(RecordKind kind) {
  return kind == RecordKind::GetReply || kind == RecordKind::GetReplyBulk ||
         kind == RecordKind::FetchReply;
}

// Record::flags.
inline constexpr std::uint8_t kLastOfCommand = 1;  // when it is applied, its command is complete
inline constexpr std::uint8_t kFenced =
    2;  // ordered after everything before it, also bulk after small
inline constexpr std::uint8_t kFetches = 4;
inline constexpr std::uint8_t kAnswers = 8;  // its command wants a reply in its ring

inline constexpr std::uint8_t kUpdates = 16;

// The command of the sender's GPU that a record belongs to; opaque to the target.
struct CommandOrigin {
  std::uint32_t ring = 0;
  std::uint64_t position = 0;
};

struct Record {
  RecordKind kind = RecordKind::SmallPut;
  device::AtomicOp op = device::AtomicOp::Set;
  std::uint8_t element_bytes = 8;
  std::uint8_t flags = 0;
  std::uint32_t payload_bytes = 0;
  std::array<std::uint64_t, 5> words{};  // accessed by the views below alone
  std::uint32_t ring = 0;                // of the command that this is part of, at its own PE
  std::uint32_t request = 0;  // Get, fetches and their replies: the requester's request token
  std::uint64_t position = 0;
};

static_assert(sizeof(Record) == 64 && std::is_trivially_copyable_v<Record>);

// ---- Views: the fields of a record of one kind. `write_to` leaves the others as they are. Offsets
// are in the device heap of the PE that receives the record.

struct PutRecord {
  std::uint64_t dest_offset = 0;

  static constexpr PutRecord from(const Record& record) { return {.dest_offset = record.words[0]}; }

  constexpr void write_to(Record& record) const { record.words[0] = dest_offset; }
};

struct GetRecord {
  std::uint64_t source_offset = 0;
  std::uint64_t requester_address = 0;
  std::uint64_t bytes = 0;

  static constexpr GetRecord from(const Record& record) {
    return {.source_offset = record.words[0],
            .requester_address = record.words[2],
            .bytes = record.words[4]};
  }

  constexpr void write_to(Record& record) const {
    record.words[0] = source_offset;
    record.words[2] = requester_address;
    record.words[4] = bytes;
  }
};

struct GetReplyRecord {
  std::uint64_t requester_address = 0;

  static constexpr GetReplyRecord from(const Record& record) {
    return {.requester_address = record.words[0]};
  }

  constexpr void write_to(Record& record) const { record.words[0] = requester_address; }
};

struct FetchReplyRecord {
  std::uint64_t old_value = 0;

  static constexpr FetchReplyRecord from(const Record& record) {
    return {.old_value = record.words[2]};
  }

  constexpr void write_to(Record& record) const { record.words[2] = old_value; }
};

struct DirectPutRecord {
  std::uint64_t put_number = 0;  // GpuDirectTransfers counts a sender's puts to a PE

  static constexpr DirectPutRecord from(const Record& record) {
    return {.put_number = record.words[0]};
  }

  constexpr void write_to(Record& record) const { record.words[0] = put_number; }
};

constexpr device::WordUpdate update_of(const Record& record) {
  return {.word_offset = record.words[1],
          .operand = record.words[2],
          .compare = record.words[3],
          .op = record.op,
          .element_bytes = record.element_bytes};
}

constexpr void set_update(Record& record, const device::WordUpdate& update) {
  record.words[1] = update.word_offset;
  record.words[2] = update.operand;
  record.words[3] = update.compare;
  record.op = update.op;
  record.element_bytes = update.element_bytes;
}

struct ParcelHeader {
  std::uint64_t sequence = 0;
  std::uint32_t bytes = 0;         // of header and records
  std::uint32_t answer_count = 0;  // records that answer a request of the target
};

static_assert(sizeof(ParcelHeader) == 16);

constexpr std::size_t padded_payload(std::size_t bytes) {
  return (bytes + 15) / 16 * 16;
}

// One parcel in memory. Header, records and payloads start at multiples of 16 bytes.
class ParcelView {
 public:
  explicit ParcelView(std::byte* memory) : memory_(memory) {}

  [[nodiscard]] ParcelHeader& header() const { return *reinterpret_cast<ParcelHeader*>(memory_); }

  // The record at `offset`: the first is at sizeof(ParcelHeader), each following one at next().
  [[nodiscard]] Record& record(std::size_t offset) const {
    return *reinterpret_cast<Record*>(memory_ + offset);
  }

  [[nodiscard]] std::byte* payload(std::size_t offset) const {
    return memory_ + offset + sizeof(Record);
  }

  [[nodiscard]] std::size_t next(std::size_t offset) const {
    return offset + sizeof(Record) + padded_payload(record(offset).payload_bytes);
  }

 private:
  std::byte* memory_;
};

}  // namespace weft::proxy
