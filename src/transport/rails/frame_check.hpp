// Whether what a peer sent makes sense. Nothing of a message is carried out before all of it has been
// looked at: a peer that sends nonsense is lost, and leaves no trace of it in memory.
//
// Pure functions; any thread.
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

// The frames of a message, one after the other.
class BatchReader {
 public:
  explicit BatchReader(std::span<const std::byte> frames) : rest_(frames) {}

  // Empty at the end, and where what is left is no whole frame.
  [[nodiscard]] std::optional<ReceivedFrame> next();

  [[nodiscard]] bool at_end() const { return rest_.empty(); }

 private:
  std::span<const std::byte> rest_;
};

// What the target knows, against which a frame is held.
struct FrameBounds {
  std::span<const std::span<std::byte>> regions;
  std::uint32_t applied_floor = 0;
  std::size_t rails = 0;       // of this PE
  std::size_t peer_rails = 0;  // of the sender
};

// What is wrong, to stand behind a colon; empty if nothing is.
[[nodiscard]] std::string_view fault_of(const ReceivedFrame& received, const FrameBounds& bounds);
// `message` has at least the bytes of a header, which is `header`.
[[nodiscard]] std::string_view fault_of(std::span<const std::byte> message,
                                        const BatchHeader& header,
                                        const FrameBounds& bounds);

// `bytes` at (region, offset) of this PE; null where there is no such memory, or not any more.
[[nodiscard]] std::byte* memory_at(std::span<const std::span<std::byte>> regions,
                                   std::uint32_t region,
                                   std::uint64_t offset,
                                   std::uint64_t bytes);

}  // namespace weft::transport::rails
