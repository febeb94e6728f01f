// The frame of an update: what every kind of it says of the word and the sequence.
//
// The frame may lie in a message that is being filled: nothing of it is read here.
//
// Pure functions, called under the transport's lock.
#pragma once

#include <cstdint>

#include "src/transport/operation.hpp"
#include "src/transport/rails/wire.hpp"

namespace weft::transport::rails {

inline void fill_frame(UpdateFrame& frame, const AtomicUpdate& update, std::uint32_t sequence) {
  frame.code = static_cast<std::uint8_t>(update.code);
  frame.element_bytes = update.element_bytes;
  frame.sequence = sequence;
  frame.region = static_cast<std::uint16_t>(update.word.region.value);
  frame.offset = update.word.offset.value;
  frame.operand = update.operand;
  frame.compare = update.compare;
}

[[nodiscard]] inline UpdateFrame frame_of(const AtomicUpdate& update,
                                          FrameKind kind,
                                          std::uint32_t sequence) {
  UpdateFrame frame{.kind = kind};
  fill_frame(frame, update, sequence);
  return frame;
}

}  // namespace weft::transport::rails
