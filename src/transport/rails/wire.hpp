// The wire format of messages between rails. A batch is a header and frames of one fixed size, some
// of them followed by data. Both sides use these structs. Only little-endian hosts are supported.
//
// The immediate data of a write names the put_signal that the piece belongs to: 16 bits of the
// source PE and 16 bits of the sequence number. EFA carries 32 bits.
#pragma once

#include <array>
#include <bit>
#include <cstddef>
#include <cstdint>
#include <cstring>
#include <type_traits>

#include "src/base/ids.hpp"

namespace weft::transport::rails {

static_assert(std::endian::native == std::endian::little, "the wire format is little-endian");

inline constexpr std::size_t kBatchBytes = 8U << 10U;
// The least that a NIC must be able to send in one message: a header, a frame and some data.
inline constexpr std::size_t kBatchBytesMin = 512;
inline constexpr std::uint32_t kBatchMagic = 0x57455405;  // "WET", version 5

struct BatchHeader {
  std::uint32_t magic = kBatchMagic;
  std::uint32_t source_pe = 0;
  std::uint32_t batch_sequence = 0;  // per (source, target); identifies duplicates. A batch without
                                     // frames only acknowledges and has no number
  std::uint32_t applied_floor =
      0;                    // acknowledges the target's operations below it: they are visible here
  std::uint32_t bytes = 0;  // of the message, header included
  std::uint32_t frame_count = 0;
  std::uint32_t batch_floor =
      0;  // acknowledges the target's batches below it: they have arrived here
  std::uint32_t reserved = 0;
};

static_assert(sizeof(BatchHeader) == 32 && std::is_trivially_copyable_v<BatchHeader>);

enum class FrameKind : std::uint8_t {
  Atomic,       // UpdateFrame: apply it to the word; answer with Reply if token != 0
  Signal,       // UpdateFrame: the same, once `count` pieces of this sequence have arrived
  EagerSignal,  // UpdateFrame: the data follows the frame: copy it, then apply the update
  // UpdateFrame: apply the signal of `sequence`, whose written pieces are delivered, once `count`
  // EagerPieces are here.
  Force,
  Flush,         // FlushFrame
  Reply,         // ReplyFrame
  Recover,       // RecoverFrame
  RecoverReply,  // RecoverReplyFrame
  Skip,          // UpdateFrame: never apply the signal of `sequence`: its operation has failed
  Rates,         // RatesFrame
  EagerPiece,  // UpdateFrame: a piece of the signal's data follows the frame: copy it, and count it
};

inline constexpr std::uint8_t kFrameKindCount = 11;

// Whether `UpdateFrame::count` bytes of data follow the frame.
[[nodiscard]] constexpr bool has_data(FrameKind kind) {
  return kind == FrameKind::EagerSignal || kind == FrameKind::EagerPiece;
}

[[nodiscard]] constexpr bool is_signal(FrameKind kind) {
  return kind == FrameKind::Signal || kind == FrameKind::EagerSignal || kind == FrameKind::Force;
}

inline constexpr std::size_t kFrameBytes = 56;

// A frame of any kind. frame_as converts it to the struct of its kind.
struct alignas(std::uint64_t) Frame {
  FrameKind kind = FrameKind::Atomic;
  std::array<std::byte, kFrameBytes - 1> rest{};
};

// An atomic update of one word, on its own or as the signal of a put. Each has a sequence number.
struct UpdateFrame {
  FrameKind kind = FrameKind::Atomic;
  std::uint8_t code = 0;           // AtomicCode
  std::uint8_t element_bytes = 0;  // 2, 4 or 8
  std::uint8_t reserved = 0;
  std::uint32_t sequence = 0;
  std::uint32_t count = 0;        // Signal: pieces; Force: EagerPieces; with data: its bytes
  std::uint16_t region = 0;       // of the word
  std::uint16_t data_region = 0;  // with data
  std::uint64_t offset = 0;       // of the word
  std::uint64_t operand = 0;
  std::uint64_t compare = 0;
  std::uint64_t token = 0;        // of the sender's operation; returned in the Reply
  std::uint64_t data_offset = 0;  // with data
};

// Asks for an acknowledgement as soon as all operations below `sequence` are visible.
struct FlushFrame {
  FrameKind kind = FrameKind::Flush;
  std::array<std::uint8_t, 3> reserved{};
  std::uint32_t sequence = 0;
  std::array<std::uint64_t, 6> unused{};
};

// The old value of the atomic whose frame had `token`.
struct ReplyFrame {
  FrameKind kind = FrameKind::Reply;
  std::array<std::uint8_t, 7> reserved{};
  std::uint64_t token = 0;
  std::uint64_t value = 0;
  std::array<std::uint64_t, 4> unused{};
};

// Closes the connection between two rails, then asks whether `sequence` was applied.
struct RecoverFrame {
  FrameKind kind = FrameKind::Recover;
  std::uint8_t sender_rail = 0;
  std::uint8_t target_rail = 0;
  std::uint8_t is_sequenced =
      0;  // 0: a put without a sequence number; the answer is always "not applied"
  std::uint32_t sequence = 0;
  std::uint64_t token = 0;       // of the sender's piece; returned in the RecoverReply
  std::uint8_t is_nic_down = 0;  // the sender's NIC is down, not only the connection
  std::array<std::uint8_t, 7> reserved{};
  std::array<std::uint64_t, 4> unused{};
};

struct RecoverReplyFrame {
  FrameKind kind = FrameKind::RecoverReply;
  std::uint8_t was_applied = 0;
  std::array<std::uint8_t, 6> reserved{};
  std::uint64_t token = 0;
  std::array<std::uint64_t, 5> unused{};
};

// The rate of each of the sender's rails relative to its fastest one.
inline constexpr std::uint8_t kFullRate = 255;

struct RatesFrame {
  FrameKind kind = FrameKind::Rates;
  std::uint8_t rail_count = 0;
  std::uint8_t knows_slow = 0;  // the sender or one of its peers has a slow rail
  std::array<std::uint8_t, 5> reserved{};
  std::array<std::uint8_t, kRailCountMax> rates{};  // kFullRate: as fast as the fastest
  std::array<std::uint8_t, 48 - kRailCountMax> unused{};
};

template <typename View>
concept FrameView =
    sizeof(View) == kFrameBytes && std::is_trivially_copyable_v<View> && offsetof(View, kind) == 0;

static_assert(FrameView<Frame> && FrameView<UpdateFrame> && FrameView<FlushFrame> &&
              FrameView<ReplyFrame> && FrameView<RecoverFrame> && FrameView<RecoverReplyFrame> &&
              FrameView<RatesFrame>);
static_assert(offsetof(UpdateFrame, offset) == 16 && offsetof(UpdateFrame, token) == 40);
static_assert(offsetof(ReplyFrame, token) == 8 && offsetof(RecoverFrame, token) == 8 &&
              offsetof(RecoverReplyFrame, token) == 8);

template <FrameView View>
[[nodiscard]] View frame_as(const Frame& frame) {
  return std::bit_cast<View>(frame);
}

// The most pieces of one put_signal that can be counted. A longer one is signalled by Force.
inline constexpr std::uint32_t kPiecesMax = (1U << 30U) - 1;

// Data that follows a frame is padded, so that frames stay aligned.
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

// The most PEs that immediate data can name.
inline constexpr std::uint32_t kPeCountMax = 1U << 16U;

}  // namespace weft::transport::rails
