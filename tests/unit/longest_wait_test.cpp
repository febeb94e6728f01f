#include "src/gpu/longest_wait.hpp"

#include <gtest/gtest.h>

namespace weft::test {
namespace {

using gpu::LongestWait;

constexpr std::uint64_t kStart = 5;

TEST(LongestWaitTest, SaysOnceForEachNumber) {
  LongestWait wait;
  EXPECT_FALSE(wait.is_too_long(0, kStart));
  EXPECT_FALSE(wait.is_too_long(0, kStart + LongestWait::kNsMax));
  EXPECT_TRUE(wait.is_too_long(0, kStart + LongestWait::kNsMax + 1));
  EXPECT_FALSE(wait.is_too_long(0, kStart + 3 * LongestWait::kNsMax));
  const std::uint64_t second = kStart + 4 * LongestWait::kNsMax;
  EXPECT_FALSE(wait.is_too_long(1, second));
  EXPECT_TRUE(wait.is_too_long(1, second + LongestWait::kNsMax + 1));
}

TEST(LongestWaitTest, WaitsThatEndInTimeAreNotReported) {
  LongestWait wait;
  for (std::uint64_t number = 0; number < 10; ++number) {
    EXPECT_FALSE(wait.is_too_long(number, kStart + number * LongestWait::kNsMax));
  }
}

}  // namespace
}  // namespace weft::test
