// Sender's part for the short segments of a list: each is a frame with its data, and many frames
// are one message. The target counts them as it counts pieces that were written.
#include <algorithm>

#include "src/transport/rails/pieces.hpp"
#include "src/transport/rails/sender.hpp"
#include "src/transport/rails/update_frames.hpp"

namespace weft::transport::rails {

// A put that takes messages.
bool Sender::has_short_segments(const Operation& operation) const {
  return operation.kind == OperationKind::Put && !operation.on_device &&
         std::ranges::any_of(operation.segments, [&](const GatherSegment& segment) {
           return segment.bytes <= state_.options.eager_bytes_max;
         });
}

// A write of its own for each short segment would cost more than a message for many.
bool Sender::is_eager_next(const OperationRecord& record) const {
  return record.segments != nullptr && record.sequenced && !record.operation.on_device &&
         record.segments->at(record.planned_bytes).segment->bytes <= state_.options.eager_bytes_max;
}

bool Sender::send_piece(Peer& peer, OperationRecord& record) {
  if (outbox_.is_congested(peer)) {
    outbox_.post(peer, false);
    if (outbox_.is_congested(peer)) {
      return false;
    }
  }
  const std::uint64_t bytes = bytes_together(record);
  const Ends ends = ends_of(record, record.planned_bytes);
  UpdateFrame& frame = outbox_.append_update(peer, FrameKind::EagerPiece, {ends.here, bytes});
  fill_frame(frame, record.operation.update, record.sequence);
  frame.count = static_cast<std::uint32_t>(bytes);
  frame.data_region = static_cast<std::uint16_t>(ends.there.region.value);
  frame.data_offset = ends.there.offset.value;
  selector_.on_planned(Direction::Write, record.operation.bytes, bytes);
  record.planned_bytes += bytes;
  ++record.eager_pieces;
  return true;
}

}  // namespace weft::transport::rails
