// The protocol between two proxies: a parcel is a header and records, some followed by data, in one
// staging slot. Defined only here; both sides use these structs. Little-endian hosts only, as for
// the rails.
//
// A stream of parcels is ordered: the target handles the records of one sender one after the other.
// Their effects become visible in that order as far as OpenSHMEM requires it: small operations
// (inbox) follow everything before them; bulk data follows bulk data, and follows small operations
// only after a fence.
#pragma once

#include <weft/device/command.hpp>

#include <cstddef>
#include <cstdint>
#include <span>
#include <type_traits>

namespace weft::proxy {

enum class RecordKind : std::uint8_t {
  SmallPut,      // payload to `dest`, through the inbox
  PutSignal,     // small payload to `dest`, then the atomic on `word`; one inbox command
  Atomic,        // also a signal; with kFetches a FetchReply returns its old value
  BulkPut,       // payload to `dest`, by the copier
  Get,           // requests `bytes` from offset `dest`; they return in GetReply records
  GetReply,      // payload to the requester's own address `dest`
  GetReplyBulk,  // the same, by the copier
  FetchReply,    // `operand` is the old value
  // The NICs have taken the data to the GPU: number `dest` of this sender's; with kUpdates then the
  // atomic on `word`.
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
  std::uint64_t dest = 0;
  std::uint64_t word = 0;     // offset of the word
  std::uint64_t operand = 0;  // Get: the requester's address
  std::uint64_t compare = 0;
  std::uint64_t bytes = 0;    // Get
  std::uint32_t ring = 0;     // of the command that this is part of, at its own PE
  std::uint32_t request = 0;  // Get, fetches and their replies: the requester's request token
  std::uint64_t position = 0;
};

static_assert(sizeof(Record) == 64 && std::is_trivially_copyable_v<Record>);

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
