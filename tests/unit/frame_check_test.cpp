// Which atomics a message may ask for. tests/fault/nonsense_test.cpp sends the faulty ones of every
// kind to a transport.
#include "src/transport/rails/frame_check.hpp"

#include <gtest/gtest.h>

#include <array>
#include <bit>
#include <cstddef>
#include <cstdint>
#include <span>
#include <string_view>

namespace weft::transport::rails {
namespace {

std::string_view fault_of_atomic(std::uint8_t code,
                                 std::uint8_t element_bytes,
                                 std::uint64_t offset) {
  static std::array<std::byte, 64> heap;
  const std::array<std::span<std::byte>, 1> regions{heap};
  ReceivedFrame received;
  received.frame = std::bit_cast<Frame>(
      UpdateFrame{.code = code, .element_bytes = element_bytes, .offset = offset});
  return fault_of(received, {.regions = regions, .rails = 1, .peer_rails = 1});
}

TEST(FrameCheck, TakesEveryAtomicOfTwoFourAndEightBytesAndNoOther) {
  for (int code = 0; code < 256; ++code) {
    for (int bytes = 0; bytes < 256; ++bytes) {
      const std::string_view fault =
          fault_of_atomic(static_cast<std::uint8_t>(code), static_cast<std::uint8_t>(bytes), 0);
      const bool is_width = bytes == 2 || bytes == 4 || bytes == 8;
      const std::string_view expected = code > static_cast<int>(AtomicCode::FloatAdd)
                                            ? "unknown atomic operation"
                                        : is_width ? ""
                                                   : "the word has neither 2, 4 nor 8 bytes";
      ASSERT_EQ(fault, expected) << "code " << code << " bytes " << bytes;
    }
  }
}

TEST(FrameCheck, TakesWordsThatAreAlignedToTheirSizeAndInsideTheRegion) {
  for (const int bytes : {2, 4, 8}) {
    for (std::uint64_t offset = 0; offset < 72; ++offset) {
      const std::string_view fault =
          fault_of_atomic(static_cast<std::uint8_t>(AtomicCode::FloatAdd),
                          static_cast<std::uint8_t>(bytes), offset);
      const bool is_inside = offset + static_cast<std::uint64_t>(bytes) <= 64;
      const bool is_aligned = offset % static_cast<std::uint64_t>(bytes) == 0;
      const std::string_view expected = !is_inside    ? "the word lies outside of all regions"
                                        : !is_aligned ? "the word is not aligned"
                                                      : "";
      ASSERT_EQ(fault, expected) << "offset " << offset << " bytes " << bytes;
    }
  }
}

}  // namespace
}  // namespace weft::transport::rails
