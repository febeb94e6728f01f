// The conversion of halves, for each half and for each float at which the rounding changes.
#include "src/base/half.hpp"

#include <gtest/gtest.h>

#include <bit>
#include <cmath>
#include <cstdint>
#include <limits>

namespace weft {
namespace {

constexpr std::uint32_t kInfinity = 0x7C00;
constexpr std::uint32_t kSign = 0x8000;

// By the definition of binary16, for a finite one without a sign. The one behind the last is 65536.
float value_of(std::uint32_t half) {
  const auto exponent = static_cast<int>(half >> 10U);
  const auto fraction = static_cast<float>(half & 0x3FFU);
  return exponent == 0 ? std::ldexp(fraction, -24) : std::ldexp(1024.0F + fraction, exponent - 25);
}

std::uint16_t signed_half(std::uint32_t half, bool is_negative) {
  return static_cast<std::uint16_t>(half | (is_negative ? kSign : 0));
}

TEST(Half, IsTheFloatThatItsDefinitionNamesAndComesBack) {
  for (std::uint32_t half = 0; half < kInfinity; ++half) {
    for (const bool is_negative : {false, true}) {
      const std::uint16_t bits = signed_half(half, is_negative);
      const float value = half_to_float(bits);
      ASSERT_EQ(value, is_negative ? -value_of(half) : value_of(half)) << bits;
      ASSERT_EQ(std::signbit(value), is_negative) << bits;
      ASSERT_EQ(half_from_float(value), bits);
    }
  }
}

TEST(Half, IsTheNearestOneAndOfTwoTheEven) {
  for (std::uint32_t half = 0; half < kInfinity; ++half) {
    const float middle = (value_of(half) + value_of(half + 1)) / 2;  // exact
    const std::uint32_t even = half + (half & 1U);
    for (const bool is_negative : {false, true}) {
      const float sign = is_negative ? -1.0F : 1.0F;
      ASSERT_EQ(half_from_float(sign * middle), signed_half(even, is_negative)) << middle;
      ASSERT_EQ(half_from_float(sign * std::nextafter(middle, 0.0F)),
                signed_half(half, is_negative))
          << "below " << middle;
      ASSERT_EQ(half_from_float(sign * std::nextafter(middle, 1e9F)),
                signed_half(half + 1, is_negative))
          << "above " << middle;
    }
  }
}

TEST(Half, OverflowsToInfinityAndUnderflowsToZero) {
  EXPECT_EQ(half_from_float(65519.0F), 0x7BFF);
  EXPECT_EQ(half_from_float(65520.0F), kInfinity);
  EXPECT_EQ(half_from_float(-1e30F), kInfinity | kSign);
  EXPECT_EQ(half_from_float(std::numeric_limits<float>::infinity()), kInfinity);
  EXPECT_EQ(half_from_float(std::numeric_limits<float>::denorm_min()), 0);
  EXPECT_EQ(half_from_float(-std::numeric_limits<float>::min()), kSign);
  EXPECT_EQ(half_to_float(kInfinity), std::numeric_limits<float>::infinity());
  EXPECT_EQ(half_to_float(kInfinity | kSign), -std::numeric_limits<float>::infinity());
}

TEST(Half, ThatIsNoNumberStaysNoneAndBecomesQuiet) {
  for (std::uint32_t payload = 1; payload < 0x400; ++payload) {
    for (const bool is_negative : {false, true}) {
      const std::uint16_t bits = signed_half(kInfinity | payload, is_negative);
      ASSERT_TRUE(std::isnan(half_to_float(bits))) << bits;
      ASSERT_EQ(half_from_float(half_to_float(bits)), bits | 0x200) << bits;
    }
  }
  EXPECT_EQ(half_from_float(std::bit_cast<float>(0x7F80'0001U)), kInfinity | 0x200)
      << "a payload that a half has no room for";
}

}  // namespace
}  // namespace weft
