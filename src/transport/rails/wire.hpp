// The messages between two PEs' rails: a batch is a header and frames of one fixed size, some with
// data behind them. Stated once; both sides use these structs. Little-endian hosts only, so far.
//
// A put's immediate data names the operation that the piece belongs to: 16 bits of the source PE, 16
// bits of the operation's sequence number. 32 bits is what EFA carries.
#pragma once

#include <bit>
#include <cstdint>
#include <cstring>
#include <type_traits>

#include "src/base/ids.hpp"

namespace weft::transport::rails {

static_assert(std::endian::native == std::endian::little, "the wire format is little-endian");

inline constexpr std::size_t kBatchBytes = 8U << 10U;
inline constexpr std::uint32_t kBatchMagic = 0x57455402;  // "WET", version 2

struct BatchHeader {
  std::uint32_t magic = kBatchMagic;
  std::uint32_t source_pe = 0;
  std::uint32_t batch_sequence = 0;  // per (source, target); a batch may arrive twice, counts once;
                                     // one without frames only announces and has no number
  std::uint32_t applied_floor = 0;   // all operations of the target below it are visible here
  std::uint32_t bytes = 0;           // with the header
  std::uint32_t frame_count = 0;
  std::uint32_t batch_floor = 0;  // all batches of the target below it have arrived here
  std::uint32_t reserved = 0;
};

static_assert(sizeof(BatchHeader) == 32 && std::is_trivially_copyable_v<BatchHeader>);

enum class FrameKind : std::uint8_t {
  Atomic,        // apply `code` to the word; sequenced; answered with Reply if token != 0
  Signal,        // the same, once `count` pieces of this sequence have arrived
  EagerSignal,   // the data follows the frame: copy it, then apply
  Force,         // apply the Signal of `sequence` now: all pieces are known to be there
  Flush,         // tell me as soon as all below `sequence` are visible
  Reply,         // `operand` is the old value for `token`
  Recover,       // end the connection (count = my rail, code = yours), then say whether
                 // `sequence` was applied
  RecoverReply,  // `operand` != 0: it was applied; for `token`
};

[[nodiscard]] constexpr bool is_signal(FrameKind kind) {
  return kind == FrameKind::Signal || kind == FrameKind::EagerSignal || kind == FrameKind::Force;
}

struct Frame {
  FrameKind kind = FrameKind::Atomic;
  std::uint8_t code = 0;           // AtomicCode
  std::uint8_t element_bytes = 0;  // 4 or 8
  std::uint8_t region = 0;         // of the word
  std::uint32_t sequence = 0;
  std::uint32_t count = 0;        // Signal: pieces; EagerSignal: bytes of data
  std::uint32_t data_region = 0;  // EagerSignal
  std::uint64_t offset = 0;       // of the word
  std::uint64_t operand = 0;
  std::uint64_t compare = 0;
  std::uint64_t token = 0;        // of the sender; comes back
  std::uint64_t data_offset = 0;  // EagerSignal
};

static_assert(sizeof(Frame) == 56 && std::is_trivially_copyable_v<Frame>);

// Data behind a frame is padded, so that frames stay aligned.
[[nodiscard]] constexpr std::size_t padded(std::size_t bytes) {
  return (bytes + 7U) & ~std::size_t{7};
}

[[nodiscard]] constexpr std::uint32_t encode_immediate(Pe source, std::uint32_t sequence) {
  return (source.value << 16U) | (sequence & 0xFFFFU);
}

struct Immediate {
  Pe source;
  std::uint16_t sequence_low = 0;
};

[[nodiscard]] constexpr Immediate decode_immediate(std::uint32_t immediate) {
  return {Pe(immediate >> 16U), static_cast<std::uint16_t>(immediate & 0xFFFFU)};
}

// The most PEs that fit into an immediate.
inline constexpr std::uint32_t kPeCountMax = 1U << 16U;

}  // namespace weft::transport::rails
