// The small parts of the rails transport that need no rail: sequence window, rate meter, immediates.
#include <gtest/gtest.h>

#include <algorithm>
#include <numeric>
#include <random>
#include <vector>

#include "src/transport/rails/rate_meter.hpp"
#include "src/transport/rails/sequence_window.hpp"
#include "src/transport/rails/wire.hpp"

namespace weft::transport::rails {
namespace {

TEST(SequenceWindow, FloorIsTheFirstThatIsMissingWhateverTheOrder) {
  std::mt19937 random(1);
  for (int round = 0; round < 200; ++round) {
    SequenceWindow window;
    std::vector<std::uint32_t> order(8);
    std::iota(order.begin(), order.end(), 0U);
    std::ranges::shuffle(order, random);
    std::vector<bool> seen(9);
    for (const std::uint32_t sequence : order) {
      EXPECT_TRUE(window.mark(sequence));
      EXPECT_FALSE(window.mark(sequence)) << "counts once";
      seen[sequence] = true;
      const auto missing =
          static_cast<std::uint32_t>(std::ranges::find(seen, false) - seen.begin());
      EXPECT_EQ(window.floor(), missing);
    }
  }
}

TEST(SequenceWindow, RefusesWhatLiesBeyondItsSpan) {
  SequenceWindow window;
  EXPECT_FALSE(window.mark(SequenceWindow::kSpan));
  EXPECT_TRUE(window.mark(SequenceWindow::kSpan - 1));
}

TEST(SequenceWindow, GoesOnAcrossTheWrapOfSixteenBits) {
  SequenceWindow window;
  for (std::uint32_t sequence = 0; sequence < 200'000; ++sequence) {
    ASSERT_EQ(window.widen(static_cast<std::uint16_t>(sequence & 0xFFFFU)), sequence);
    ASSERT_TRUE(window.mark(sequence));
    ASSERT_TRUE(window.is_done(sequence));
    ASSERT_FALSE(window.is_done(sequence + 1));
  }
}

TEST(RateMeter, MeasuresBusyTimeOnly) {
  RateMeter meter;
  std::uint64_t now = 1'000'000'000;
  for (int i = 0; i < 100; ++i) {
    meter.on_post(now, 1'000'000);
    now += 10'000'000;  // 1 MB in 10 ms: 100 MB/s
    meter.on_complete(now, 1'000'000);
    now += 500'000'000;  // idle
  }
  EXPECT_NEAR(meter.bytes_per_s(), 1e8, 1e6);
}

TEST(RailWeight, FollowsARailThatStaysSlow) {
  RailWeight weight;
  for (std::uint32_t i = 0; i + 1 < SlowBound{}.samples; ++i) {
    weight.update(25, 100);
    EXPECT_EQ(weight.value(), 1.0) << "may be chance";
  }
  weight.update(25, 100);
  EXPECT_NEAR(weight.value(), 0.25, 0.01);
  weight.update(90, 100);
  EXPECT_EQ(weight.value(), 1.0) << "recovered";
}

TEST(RailWeight, IgnoresWhatSendersThatMeetDoToARate) {
  RailWeight weight;
  for (const double rate : {50.0, 90.0, 40.0, 60.0, 100.0, 70.0, 66.0, 0.0}) {
    weight.update(rate, 100);
    EXPECT_EQ(weight.value(), 1.0);
  }
}

TEST(Wire, ImmediateCarriesSourceAndSixteenBitsOfSequence) {
  for (const std::uint32_t pe : {0U, 1U, 255U, kPeCountMax - 1}) {
    for (const std::uint32_t sequence : {0U, 65535U, 65536U, 1'000'000U}) {
      const Immediate immediate = decode_immediate(encode_immediate(Pe(pe), sequence));
      EXPECT_EQ(immediate.source.value, pe);
      EXPECT_EQ(immediate.sequence_low, sequence & 0xFFFFU);
    }
  }
}

}  // namespace
}  // namespace weft::transport::rails
