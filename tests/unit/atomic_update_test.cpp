// Each atomic of each width: the word, its neighbours, and the old value.
#include "src/transport/atomic_update.hpp"

#include <gtest/gtest.h>

#include <array>
#include <bit>
#include <cmath>
#include <cstdint>
#include <cstring>
#include <limits>
#include <random>
#include <thread>
#include <vector>

namespace weft::transport {
namespace {

constexpr std::array<std::uint8_t, 3> kWidths{2, 4, 8};

std::uint64_t mask_of(std::uint8_t width) {
  return ~std::uint64_t{0} >> (64 - 8 * width);
}

struct Case {
  AtomicCode code;
  std::uint64_t old;
  std::uint64_t operand;
  std::uint64_t compare;
  std::uint64_t expected;
};

// In full words; a narrower one has the low bytes of each.
const std::vector<Case>& integer_cases() {
  constexpr std::uint64_t kOnes = ~std::uint64_t{0};
  constexpr std::uint64_t kA = 0xF0F1'F2F3'F4F5'F6F7;
  constexpr std::uint64_t kB = 0x0123'4567'89AB'CDEF;
  static const std::vector<Case> kAll{
      {AtomicCode::Set, kA, kB, 0, kB},          {AtomicCode::Add, 5, 7, 0, 12},
      {AtomicCode::Add, kOnes, 2, 0, 1},  // wraps within the word
      {AtomicCode::Add, 0, kOnes, 0, kOnes},     {AtomicCode::And, kA, kB, 0, kA & kB},
      {AtomicCode::Or, kA, kB, 0, kA | kB},      {AtomicCode::Xor, kA, kB, 0, kA ^ kB},
      {AtomicCode::CompareSwap, kA, kB, kA, kB}, {AtomicCode::CompareSwap, kA, kB, kA + 1, kA},
      {AtomicCode::Fetch, kA, kB, kB, kA},
  };
  return kAll;
}

TEST(ApplyAtomic, ChangesTheWordAloneAndReturnsItsOldValue) {
  for (const std::uint8_t width : kWidths) {
    for (std::size_t i = 0; i < integer_cases().size(); ++i) {
      const Case& one = integer_cases()[i];
      std::array<std::uint64_t, 3> memory{~std::uint64_t{0}, one.old, ~std::uint64_t{0}};
      const std::uint64_t result = apply_atomic(&memory[1], {.code = one.code,
                                                             .element_bytes = width,
                                                             .operand = one.operand,
                                                             .compare = one.compare});
      const std::uint64_t mask = mask_of(width);
      EXPECT_EQ(result, one.old & mask) << "case " << i << " width " << int{width};
      EXPECT_EQ(memory[1], (one.expected & mask) | (one.old & ~mask))
          << "case " << i << " width " << int{width};
      EXPECT_EQ(memory[0] & memory[2], ~std::uint64_t{0});
    }
  }
}

TEST(ApplyAtomic, OfTwoBytesWrapsAndLeavesTheOtherHalfOfItsNeighboursWord) {
  std::array<std::uint16_t, 4> words{1, 0xFFFF, 3, 4};
  EXPECT_EQ(apply_atomic(&words[1], {.code = AtomicCode::Add, .element_bytes = 2, .operand = 1}),
            0xFFFFU);
  EXPECT_EQ(words, (std::array<std::uint16_t, 4>{1, 0, 3, 4}));
  EXPECT_EQ(
      apply_atomic(&words[3], {.code = AtomicCode::Add, .element_bytes = 2, .operand = 0x1'FFFF}),
      4U)
      << "bytes of the operand beyond the width do not count";
  EXPECT_EQ(words, (std::array<std::uint16_t, 4>{1, 0, 3, 3}));
}

template <typename Number, typename Word>
void expect_float_sum(Number a, Number b) {
  alignas(8) std::array<Word, 2> words{std::bit_cast<Word>(a), 77};
  const AtomicUpdate update{.code = AtomicCode::FloatAdd,
                            .element_bytes = sizeof(Word),
                            .operand = std::bit_cast<Word>(b)};
  EXPECT_EQ(apply_atomic(words.data(), update), std::bit_cast<Word>(a));
  const Number sum = a + b;
  if (std::isnan(sum)) {
    EXPECT_TRUE(std::isnan(std::bit_cast<Number>(words[0]))) << a << " + " << b;
  } else {
    EXPECT_EQ(words[0], std::bit_cast<Word>(sum)) << a << " + " << b;
  }
  EXPECT_EQ(words[1], 77U);
}

template <typename Number, typename Word>
void expect_float_sums() {
  using Limits = std::numeric_limits<Number>;
  const std::vector<Number> numbers{0,
                                    -Number{0},
                                    1,
                                    -1,
                                    Number{0.1F},
                                    Number{1e-20F},
                                    Limits::max(),
                                    Limits::lowest(),
                                    Limits::min(),
                                    Limits::denorm_min(),
                                    Limits::infinity(),
                                    -Limits::infinity(),
                                    Limits::quiet_NaN()};
  for (const Number a : numbers) {
    for (const Number b : numbers) {
      expect_float_sum<Number, Word>(a, b);
    }
  }
}

TEST(ApplyAtomic, AddsFloatsAndDoubles) {
  expect_float_sums<float, std::uint32_t>();
  expect_float_sums<double, std::uint64_t>();
}

std::uint64_t add_halves(std::uint16_t a, std::uint16_t b) {
  std::array<std::uint16_t, 2> words{a, 0x1234};
  const std::uint64_t old =
      apply_atomic(words.data(), {.code = AtomicCode::FloatAdd, .element_bytes = 2, .operand = b});
  EXPECT_EQ(old, a);
  EXPECT_EQ(words[1], 0x1234);
  return words[0];
}

TEST(ApplyAtomic, AddsHalvesAndRoundsToTheNearestEven) {
  EXPECT_EQ(add_halves(0x3C00, 0x3C00), 0x4000U) << "1 + 1 = 2";
  EXPECT_EQ(add_halves(0x6800, 0x3C00), 0x6800U) << "2048 + 1 = 2049, between 2048 and 2050";
  EXPECT_EQ(add_halves(0x6801, 0x3C00), 0x6802U) << "2050 + 1 = 2051, between 2050 and 2052";
  EXPECT_EQ(add_halves(0x6800, 0x3E00), 0x6801U) << "2048 + 1.5 is nearer to 2050";
  EXPECT_EQ(add_halves(0x0001, 0x0001), 0x0002U) << "subnormal";
  EXPECT_EQ(add_halves(0x03FF, 0x0001), 0x0400U) << "subnormal to normal";
  EXPECT_EQ(add_halves(0x0400, 0x8001), 0x03FFU) << "and back";
  EXPECT_EQ(add_halves(0x3C00, 0xBC00), 0x0000U) << "1 - 1 = +0";
  EXPECT_EQ(add_halves(0x8000, 0x8000), 0x8000U) << "-0 - 0 = -0";
}

TEST(ApplyAtomic, AddsHalvesThatAreNoFiniteNumbers) {
  EXPECT_EQ(add_halves(0x7BFF, 0x4C00), 0x7C00U) << "65504 + 16 rounds to infinity";
  EXPECT_EQ(add_halves(0x7BFF, 0x4BFF), 0x7BFFU) << "65504 + 15.99 does not";
  EXPECT_EQ(add_halves(0xFBFF, 0xFBFF), 0xFC00U) << "-infinity";
  EXPECT_EQ(add_halves(0x7C00, 0x3C00), 0x7C00U) << "infinity + 1";
  for (const std::uint64_t sum :
       {add_halves(0x7C00, 0xFC00), add_halves(0x7E00, 0x3C00), add_halves(0x3C00, 0x7C01)}) {
    EXPECT_EQ(sum & 0x7C00U, 0x7C00U) << "infinity - infinity, or a NaN";
    EXPECT_NE(sum & 0x0200U, 0U) << "is a quiet NaN";
  }
}

// The nearest half by search; of two that are equally near the even one.
std::uint16_t nearest_half(double value) {
  const double magnitude = std::abs(value);
  std::uint32_t below = 0;  // the largest that is not above it
  for (std::uint32_t step = 0x4000; step != 0; step /= 2) {
    const std::uint32_t next = below + step;
    below = next < 0x7C00 && half_to_float(static_cast<std::uint16_t>(next)) <= magnitude ? next
                                                                                          : below;
  }
  const double low = half_to_float(static_cast<std::uint16_t>(below));
  const double high =
      below == 0x7BFF ? 65536 : half_to_float(static_cast<std::uint16_t>(below + 1));
  const double to_low = magnitude - low;
  const double to_high = high - magnitude;
  const bool is_up = to_high < to_low || (to_high == to_low && below % 2 == 1);
  return static_cast<std::uint16_t>((below + (is_up ? 1 : 0)) | (std::signbit(value) ? 0x8000 : 0));
}

TEST(ApplyAtomic, AddsAnyTwoHalvesAsIfWithoutLimitAndThenRoundsOnce) {
  std::mt19937 random(3);
  for (int i = 0; i < 200'000; ++i) {
    const auto a = static_cast<std::uint16_t>(random());
    // Every second one of an exponent near a's, where the last bits of both count.
    const auto any = static_cast<std::uint16_t>(random());
    const auto near = static_cast<std::uint16_t>((any & 0x83FF) | ((a + (any & 0xC00)) & 0x7C00));
    const std::uint16_t b = i % 2 == 0 ? any : near;
    if ((a & 0x7C00) == 0x7C00 || (b & 0x7C00) == 0x7C00) {
      continue;
    }
    const double exact = double{half_to_float(a)} + double{half_to_float(b)};
    ASSERT_EQ(add_halves(a, b), nearest_half(exact)) << a << " + " << b;
  }
}

// Small whole numbers, so that no sum is rounded.
template <typename Number, typename Word>
void expect_no_addition_lost(Number (*number_of)(Word), Word one) {
  constexpr int kThreads = 4;
  constexpr int kEach = 400;
  alignas(8) std::array<Word, 2> words{};
  const AtomicUpdate update{
      .code = AtomicCode::FloatAdd, .element_bytes = sizeof(Word), .operand = one};
  std::vector<std::thread> threads;
  threads.reserve(kThreads);
  for (int i = 0; i < kThreads; ++i) {
    threads.emplace_back([&] {
      for (int j = 0; j < kEach; ++j) {
        apply_atomic(words.data(), update);
      }
    });
  }
  for (std::thread& thread : threads) {
    thread.join();
  }
  EXPECT_EQ(number_of(words[0]), Number{kThreads * kEach});
}

TEST(ApplyAtomic, LosesNoAdditionOfAnotherThread) {
  expect_no_addition_lost<float, std::uint16_t>(
      +[](std::uint16_t bits) { return half_to_float(bits); }, 0x3C00);
  expect_no_addition_lost<float, std::uint32_t>(
      +[](std::uint32_t bits) { return std::bit_cast<float>(bits); },
      std::bit_cast<std::uint32_t>(1.0F));
  expect_no_addition_lost<double, std::uint64_t>(
      +[](std::uint64_t bits) { return std::bit_cast<double>(bits); },
      std::bit_cast<std::uint64_t>(1.0));
}

}  // namespace
}  // namespace weft::transport
