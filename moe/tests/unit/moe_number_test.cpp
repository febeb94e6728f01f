// The small formats of weft::moe over their whole domains: every code, and every bfloat16 and half
// as input, against the nearest of all codes.
#include <weft/moe/number.hpp>
#include <weft/moe/quantize.hpp>

#include <gtest/gtest.h>

#include <array>
#include <cmath>
#include <cstdint>
#include <limits>
#include <random>
#include <vector>

namespace weft::moe {
namespace {

struct Named {
  const char* name;
  SmallFormat format;
};

const std::array kFormats{Named{"e4m3", e4m3_format()}, Named{"e5m2", e5m2_format()},
                          Named{"e2m1", e2m1_format()}};

// The code that a definition by search gives: nearest, ties to the even code, saturating.
// `magnitude` is finite.
std::uint32_t nearest(const SmallFormat& format, double magnitude) {
  if (magnitude >= static_cast<double>(decode(format, format.largest))) {
    return format.largest;
  }
  std::uint32_t best = 0;
  double distance = std::numeric_limits<double>::infinity();
  for (std::uint32_t code = 0; code <= format.largest; ++code) {
    const double found = std::abs(static_cast<double>(decode(format, code)) - magnitude);
    if (found < distance || (found == distance && code % 2 == 0)) {
      best = code;
      distance = found;
    }
  }
  return best;
}

TEST(MoeNumber, TheLargestAndSmallestNumbersAreThoseOfTheSpecifications) {
  EXPECT_EQ(decode(e4m3_format(), 0x7E), 448.0F);
  EXPECT_EQ(decode(e4m3_format(), 1), std::ldexp(1.0F, -9));
  EXPECT_EQ(decode(e5m2_format(), 0x7B), 57344.0F);
  EXPECT_EQ(decode(e5m2_format(), 1), std::ldexp(1.0F, -16));
  EXPECT_EQ(decode(half_format(), 0x7BFF), 65504.0F);
  EXPECT_EQ(decode(half_format(), 1), std::ldexp(1.0F, -24));
  const std::array<float, 8> expected{0, 0.5F, 1, 1.5F, 2, 3, 4, 6};
  for (std::uint32_t code = 0; code < 8; ++code) {
    EXPECT_EQ(decode(e2m1_format(), code), expected[code]);
  }
  EXPECT_TRUE(std::isinf(decode(e5m2_format(), 0x7C)));
  EXPECT_TRUE(std::isnan(decode(e5m2_format(), 0x7D)));
  EXPECT_TRUE(std::isnan(decode(e4m3_format(), 0x7F)));
  EXPECT_TRUE(std::isnan(decode(e4m3_format(), 0xFF)));
}

TEST(MoeNumber, EveryCodeComesBack) {
  for (const Named& named : kFormats) {
    for (std::uint32_t code = 0; code <= named.format.largest; ++code) {
      for (const std::uint32_t sign : {0U, named.format.sign}) {
        EXPECT_EQ(encode(named.format, decode(named.format, code | sign)), code | sign)
            << named.name;
      }
    }
  }
  for (std::uint32_t code = 0; code <= 0xFFFF; ++code) {
    const float value = decode(half_format(), code);
    if (!std::isnan(value)) {
      EXPECT_EQ(encode(half_format(), value), code);
    }
  }
}

TEST(MoeNumber, EveryBfloat16BecomesTheNearestCode) {
  for (const Named& named : kFormats) {
    for (std::uint32_t bits = 0; bits < 0x7F80; ++bits) {
      const float value = from_bfloat16(static_cast<std::uint16_t>(bits));
      const std::uint32_t code = nearest(named.format, value);
      ASSERT_EQ(encode(named.format, value), code) << named.name << " " << value;
      ASSERT_EQ(encode(named.format, -value), code | named.format.sign)
          << named.name << " " << value;
    }
  }
}

TEST(MoeNumber, TiesGoToTheEvenCode) {
  for (const Named& named : kFormats) {
    for (std::uint32_t code = 0; code < named.format.largest; ++code) {
      const float low = decode(named.format, code);
      const float middle = (low + decode(named.format, code + 1)) / 2;
      EXPECT_EQ(encode(named.format, middle), code + code % 2) << named.name;
      EXPECT_EQ(encode(named.format, std::nextafter(middle, 0.0F)), code) << named.name;
      EXPECT_EQ(encode(named.format, std::nextafter(middle, 1e9F)), code + 1) << named.name;
    }
  }
}

TEST(MoeNumber, InfinitySaturatesAndNanStays) {
  const float infinity = std::numeric_limits<float>::infinity();
  EXPECT_EQ(encode(e4m3_format(), infinity), 0x7EU);
  EXPECT_EQ(encode(e5m2_format(), -infinity), 0xFBU);
  EXPECT_EQ(encode(half_format(), infinity), 0x7C00U);
  EXPECT_EQ(encode(half_format(), 65520.0F), 0x7C00U);
  EXPECT_EQ(encode(half_format(), 65519.0F), 0x7BFFU);
  EXPECT_EQ(encode(e4m3_format(), std::nanf("")) & 0x7FU, 0x7FU);
  EXPECT_TRUE(std::isnan(decode(e5m2_format(), encode(e5m2_format(), std::nanf("")))));
  EXPECT_TRUE(std::isnan(from_bfloat16(bfloat16_of(std::nanf("")))));
}

TEST(MoeNumber, Bfloat16RoundsToNearestEven) {
  std::mt19937 random(7);
  for (int i = 0; i < 200000; ++i) {
    const float value = float_of(static_cast<std::uint32_t>(random()));
    if (!std::isfinite(value)) {
      continue;
    }
    const auto down = static_cast<std::uint16_t>(bits_of(value) >> 16);
    const double below = std::abs(static_cast<double>(from_bfloat16(down)) - value);
    const float next = from_bfloat16(static_cast<std::uint16_t>(down + 1));
    const double above = std::isfinite(next)
                             ? std::abs(static_cast<double>(next) - value)
                             : std::abs(std::ldexp(std::copysign(1.0, value), 128) - value);
    const bool up = above < below || (above == below && down % 2 == 1);
    EXPECT_EQ(bfloat16_of(value), down + (up ? 1 : 0)) << value;
  }
}

TEST(MoeNumber, Ue8m0IsTheLeastPowerOfTwoThatIsNotBelow) {
  for (std::uint32_t code = 1; code < 255; ++code) {
    const float power = from_ue8m0(static_cast<std::uint8_t>(code));
    EXPECT_EQ(ue8m0_of(power), code);
    if (code < 254) {
      EXPECT_EQ(ue8m0_of(std::nextafter(power, 3e38F)), code + 1);
    }
    EXPECT_EQ(power, std::ldexp(1.0F, static_cast<int>(code) - 127));
  }
  EXPECT_EQ(ue8m0_of(std::numeric_limits<float>::max()), 254);
}

TEST(MoeQuantize, Fp8StaysWithinHalfAStepAndUsesTheWholeRange) {
  std::mt19937 random(11);
  std::normal_distribution<float> normal;
  for (const int count : {8, 128}) {
    for (int trial = 0; trial < 200; ++trial) {
      std::vector<float> values(static_cast<std::size_t>(count));
      for (float& value : values) {
        value = std::ldexp(normal(random), trial % 40 - 20);
      }
      std::vector<std::uint8_t> codes(values.size());
      const float scale = quantize_fp8(e4m3_format(), values.data(), count, codes.data());
      const std::uint8_t power =
          quantize_fp8_ue8m0(e4m3_format(), values.data(), count, codes.data());
      EXPECT_GE(from_ue8m0(power), scale);
      EXPECT_LT(from_ue8m0(power), 2 * scale);
      quantize_fp8(e4m3_format(), values.data(), count, codes.data());
      for (std::size_t i = 0; i < values.size(); ++i) {
        const float back = decode(e4m3_format(), codes[i]) * scale;
        EXPECT_LE(std::abs(back - values[i]),
                  std::max(std::abs(values[i]) / 15, scale * std::ldexp(1.0F, -9)));
      }
      EXPECT_NEAR(largest_of(values.data(), count), 448 * scale, scale);
    }
  }
}

TEST(MoeQuantize, NanDoesNotCountAsTheLargestAndInfinityDoes) {
  const float infinity = std::numeric_limits<float>::infinity();
  const std::array<float, 4> values{1.0F, -std::nanf(""), -3.0F, std::nanf("")};
  EXPECT_EQ(largest_of(values.data(), 4), 3.0F);
  const std::array<float, 2> endless{2.0F, -infinity};
  EXPECT_EQ(largest_of(endless.data(), 2), infinity);
}

TEST(MoeQuantize, ZerosAndTinyBlocksBecomeZerosWithScaleOne) {
  std::array<float, 128> values{};
  std::array<std::uint8_t, 128> codes{};
  EXPECT_EQ(quantize_fp8(e4m3_format(), values.data(), 128, codes.data()), 1.0F);
  EXPECT_EQ(quantize_fp8_ue8m0(e4m3_format(), values.data(), 128, codes.data()), 127);
  values[3] = 1e-30F;
  EXPECT_EQ(quantize_fp8(e4m3_format(), values.data(), 128, codes.data()), 1.0F);
  for (const std::uint8_t code : codes) {
    EXPECT_EQ(code, 0);
  }
  EXPECT_EQ(quantize_nvfp4(values.data(), nvfp4_row_scale(values.data(), 16), codes.data()), 0);
}

TEST(MoeQuantize, Nvfp4BringsBlocksBackWithinAStep) {
  std::mt19937 random(13);
  std::normal_distribution<float> normal;
  for (int trial = 0; trial < 500; ++trial) {
    std::array<float, 64> values{};
    for (std::size_t i = 0; i < values.size(); ++i) {
      values[i] = normal(random) * static_cast<float>(1 + i / 16);
    }
    const float row_scale = nvfp4_row_scale(values.data(), 64);
    for (std::size_t block = 0; block < 4; ++block) {
      const float* block_values = values.data() + block * 16;
      std::array<std::uint8_t, 8> pairs{};
      const float scale =
          decode(e4m3_format(), quantize_nvfp4(block_values, row_scale, pairs.data())) * row_scale;
      for (std::size_t i = 0; i < 16; ++i) {
        const std::uint32_t code = pairs[i / 2] >> (4 * (i % 2)) & 0xFU;
        // Half of the widest step (4 to 6), and what rounding the scale down may cut off.
        EXPECT_LE(std::abs(decode(e2m1_format(), code) * scale - block_values[i]), 1.4F * scale);
      }
    }
  }
}

}  // namespace
}  // namespace weft::moe
