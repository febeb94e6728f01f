// Validates messages from peers. The whole message is validated before any of its frames is
// applied. So a message that fails these checks changes no memory. Its sender is lost.
//
// Pure functions. Any thread.
#pragma once

#include <cstddef>
#include <cstdint>
#include <optional>
#include <span>
#include <string_view>

#include "src/transport/rails/state.hpp"
#include "src/transport/rails/wire.hpp"

namespace weft::transport::rails {

struct ReceivedFrame {
  Frame frame;
  std::span<const std::byte> data;
};

// Iterates over the frames of a message.
class BatchReader {
 public:
  explicit BatchReader(std::span<const std::byte> frames) : rest_(frames) {}

  // Empty at the end, or if the rest is not a whole frame.
  [[nodiscard]] std::optional<ReceivedFrame> next();

  [[nodiscard]] bool at_end() const { return rest_.empty(); }

 private:
  std::span<const std::byte> rest_;
};

// What the target knows, against which it validates frames.
struct FrameBounds {
  std::span<const std::span<std::byte>> regions;
  std::uint32_t applied_floor = 0;
  std::size_t rails = 0;       // of this PE
  std::size_t peer_rails = 0;  // of the sender
};

// What is wrong with the frame, as part of an error message. Empty if it is valid.
[[nodiscard]] std::string_view fault_of(const ReceivedFrame& received, const FrameBounds& bounds);
// The same for a whole message. It is at least as long as a header, and begins with `header`.
[[nodiscard]] std::string_view fault_of(std::span<const std::byte> message,
                                        const BatchHeader& header,
                                        const FrameBounds& bounds);

// The address of `bytes` at (region, offset) of this PE. Null if they are not inside the region, or
// it was removed.
[[nodiscard]] std::byte* memory_at(std::span<const std::span<std::byte>> regions,
                                   std::uint32_t region,
                                   std::uint64_t offset,
                                   std::uint64_t bytes);

}  // namespace weft::transport::rails
