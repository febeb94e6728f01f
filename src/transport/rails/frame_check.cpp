#include "src/transport/rails/frame_check.hpp"

#include <cstring>

#include "src/transport/atomic_update.hpp"

namespace weft::transport::rails {
namespace {

// A region that was removed is not an error: a late operation may name it, and then finds no
// memory.
bool is_possible(const FrameBounds& bounds,
                 std::uint32_t region,
                 std::uint64_t offset,
                 std::uint64_t bytes) {
  return region < bounds.regions.size() &&
         (bounds.regions[region].empty() ||
          memory_at(bounds.regions, region, offset, bytes) != nullptr);
}

// Operations below the floor are done. No sender is further ahead of it than the sequence window.
bool is_in_window(std::uint32_t sequence, std::uint32_t floor) {
  return static_cast<std::int32_t>(sequence - floor) <
         static_cast<std::int32_t>(SequenceWindow::kSpan);
}

std::string_view fault_of_update(const UpdateFrame& frame, const FrameBounds& bounds) {
  if (!is_atomic_code(frame.code)) {
    return "unknown atomic operation";
  }
  if (!is_atomic_width(frame.element_bytes)) {
    return "the word has neither 2, 4 nor 8 bytes";
  }
  if (!is_possible(bounds, frame.region, frame.offset, frame.element_bytes)) {
    return "the word lies outside of all regions";
  }
  // In a window, alignment depends on the address at the target, which the offset does not show. It
  // is checked when the update is applied.
  if (frame.region == 0 && frame.offset % frame.element_bytes != 0) {
    return "the word is not aligned";
  }
  if (!is_in_window(frame.sequence, bounds.applied_floor)) {
    return "the sequence number is outside of the window";
  }
  if (frame.kind == FrameKind::Signal && frame.count > kPiecesMax) {
    return "the number of pieces exceeds the limit";
  }
  if (has_data(frame.kind) &&
      !is_possible(bounds, frame.data_region, frame.data_offset, frame.count)) {
    return "the data lies outside of all regions";
  }
  return {};
}

}  // namespace

std::byte* memory_at(std::span<const std::span<std::byte>> regions,
                     std::uint32_t region,
                     std::uint64_t offset,
                     std::uint64_t bytes) {
  if (region >= regions.size()) {
    return nullptr;
  }
  const std::span<std::byte> local = regions[region];
  const bool is_inside = offset <= local.size() && bytes <= local.size() - offset;
  return is_inside && !local.empty() ? local.data() + offset : nullptr;
}

std::optional<ReceivedFrame> BatchReader::next() {
  ReceivedFrame received;
  if (rest_.size() < sizeof(Frame)) {
    return std::nullopt;
  }
  std::memcpy(&received.frame, rest_.data(), sizeof(Frame));
  const std::span<const std::byte> behind = rest_.subspan(sizeof(Frame));
  const std::size_t bytes =
      has_data(received.frame.kind) ? frame_as<UpdateFrame>(received.frame).count : 0;
  if (padded(bytes) > behind.size()) {
    return std::nullopt;
  }
  received.data = behind.first(bytes);
  rest_ = behind.subspan(padded(bytes));
  return received;
}

std::string_view fault_of(const ReceivedFrame& received, const FrameBounds& bounds) {
  if (static_cast<std::uint8_t>(received.frame.kind) >= kFrameKindCount) {
    return "unknown kind of frame";
  }
  switch (received.frame.kind) {
    case FrameKind::Atomic:
    case FrameKind::Signal:
    case FrameKind::EagerSignal:
    case FrameKind::EagerPiece:
    case FrameKind::Force:
    case FrameKind::Skip:
      return fault_of_update(frame_as<UpdateFrame>(received.frame), bounds);
    case FrameKind::Flush:
      return is_in_window(frame_as<FlushFrame>(received.frame).sequence - 1, bounds.applied_floor)
                 ? std::string_view{}
                 : "flush of operations that were never sent";
    case FrameKind::Recover: {
      const auto frame = frame_as<RecoverFrame>(received.frame);
      if (frame.target_rail >= bounds.rails || frame.sender_rail >= bounds.peer_rails) {
        return "unknown rail";
      }
      return frame.is_sequenced == 0 || is_in_window(frame.sequence, bounds.applied_floor)
                 ? std::string_view{}
                 : "recovery of an operation that was never sent";
    }
    case FrameKind::Rates:
      return frame_as<RatesFrame>(received.frame).rail_count == bounds.peer_rails
                 ? std::string_view{}
                 : "rates for a wrong number of rails";
    case FrameKind::Reply:
    case FrameKind::RecoverReply:
      return {};  // the lookup of the token decides whether it answers a request of ours
  }
  return {};
}

std::string_view fault_of(std::span<const std::byte> message,
                          const BatchHeader& header,
                          const FrameBounds& bounds) {
  if (header.bytes != message.size()) {
    return "its length differs from the one in its header";
  }
  BatchReader reader(message.subspan(sizeof(BatchHeader)));
  std::uint32_t count = 0;
  while (const auto received = reader.next()) {
    ++count;
    if (const std::string_view fault = fault_of(*received, bounds); !fault.empty()) {
      return fault;
    }
  }
  if (!reader.at_end()) {
    return "a frame extends beyond the message";
  }
  return count == header.frame_count ? std::string_view{}
                                     : "its number of frames differs from the one in its header";
}

}  // namespace weft::transport::rails
