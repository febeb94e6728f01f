// The small parts of the rails transport that need no rail: sequence window, rate meter,
// immediates.
#include <gtest/gtest.h>

#include <algorithm>
#include <numeric>
#include <random>
#include <vector>

#include "src/transport/rails/copy_pool.hpp"
#include "src/transport/rails/piece_tally.hpp"
#include "src/transport/rails/pool.hpp"
#include "src/transport/rails/rail_pace.hpp"
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

constexpr std::uint64_t kMs = 1'000'000;

TEST(RailPace, IsTheBestAverageUpToAnyCompletion) {
  RailPace pace;
  for (int i = 0; i < 4; ++i) {
    pace.on_post(5 * kMs, 1'000, i < 2);
  }
  EXPECT_EQ(pace.peers(), 2U);
  pace.on_complete(6 * kMs, 1'000);
  EXPECT_EQ(pace.best_average(4'000), 0) << "less than half says little";
  pace.on_complete(7 * kMs, 1'000);
  EXPECT_DOUBLE_EQ(pace.best_average(4'000), 0.001);
  pace.on_complete(50 * kMs, 2'000);  // waited for a peer whose NIC was busy
  EXPECT_DOUBLE_EQ(pace.best_average(4'000), 0.001);
}

TEST(RailPace, ComparesAtTheBytesThatAnotherRailHad) {
  RailPace pace;
  for (int i = 0; i < 3; ++i) {
    pace.on_post(0, 1'000, i == 0);
  }
  pace.on_complete(1 * kMs, 1'000);
  pace.on_complete(4 * kMs, 1'000);
  pace.on_complete(5 * kMs, 1'000);
  EXPECT_DOUBLE_EQ(pace.best_average(3'000), 0.0006);
  EXPECT_DOUBLE_EQ(pace.best_average(2'000), 0.001) << "the third is not looked at";
  EXPECT_DOUBLE_EQ(pace.best_average(500), 0.001) << "they were done with the first";
}

TEST(RailPace, RemembersEnoughOfALongBurst) {
  RailPace pace;
  for (std::uint64_t i = 0; i < 1'000; ++i) {
    pace.on_post(0, 1'000, i == 0);
  }
  for (std::uint64_t i = 1; i <= 1'000; ++i) {
    pace.on_complete(i * kMs, 1'000);
  }
  for (const std::uint64_t bytes : {100'000U, 300'000U, 1'000'000U}) {
    EXPECT_NEAR(pace.best_average(bytes), 0.001, 1e-9) << bytes;
  }
}

TEST(RailPace, ThatBeginsAnewCountsWhatIsLeft) {
  RailPace pace;
  pace.on_post(0, 3'000, true);
  pace.on_complete(2 * kMs, 1'000);
  pace.restart();
  EXPECT_TRUE(pace.is_rest());
  EXPECT_EQ(pace.posted_bytes(), 2'000U);
  pace.on_complete(4 * kMs, 2'000);
  EXPECT_DOUBLE_EQ(pace.best_average(2'000), 0.001);
}

RailPace burst_of(std::uint64_t bytes, std::uint64_t busy_ns) {
  RailPace pace;
  pace.on_post(0, bytes, true);
  pace.on_complete(busy_ns, bytes);
  return pace;
}

const RailPace kBurst = burst_of(1'000'000, kMs);
const RailPace kLongBurst = burst_of(1'000'000, 300 * kMs);

TEST(RailPace, OfABurstThatGoesOnIsItsAverage) {
  RailPace pace;
  pace.on_post(0, 16'000, true);
  pace.on_complete(2 * kMs, 2'000);
  EXPECT_EQ(pace.best_average(16'000), 0);
  EXPECT_DOUBLE_EQ(pace.average(), 0.001);
  EXPECT_EQ(pace.busy_ns(), 2 * kMs);
}

constexpr std::uint32_t kNeeded = 5;

TEST(Lateness, OfOtherRailsAsksForMoreBursts) {
  Lateness never;
  Lateness often;
  for (int burst = 0; burst < 100; ++burst) {
    never.add(false);
    often.add(burst % 2 == 0);
  }
  EXPECT_EQ(late_bursts_that_tell({}), 4U);
  EXPECT_EQ(late_bursts_that_tell(never), 4U);
  EXPECT_NEAR(late_bursts_that_tell(often), 10, 1);
  for (int burst = 0; burst < 100; ++burst) {
    often.add(true);
  }
  EXPECT_LE(late_bursts_that_tell(often), 42U) << "however late all are";
}

TEST(RailWeight, FollowsARailThatIsSlowInEachOfSomeBursts) {
  RailWeight weight;
  for (int burst = 0; burst < 4; ++burst) {
    weight.update(0.25, kBurst, kNeeded);
    EXPECT_EQ(weight.value(), 1.0) << "may be chance";
  }
  weight.update(0.25, kBurst, kNeeded);
  EXPECT_NEAR(weight.value(), 0.25, 0.01);
  weight.update(0.5, kBurst, kNeeded);
  EXPECT_NEAR(weight.value(), 0.28, 0.01) << "half of the way to a quarter more";
  for (int burst = 0; burst < 2; ++burst) {
    weight.update(0.9, kBurst, kNeeded);
    EXPECT_LT(weight.value(), 0.4) << "may have waited for a busy peer with the others";
  }
  weight.update(0.9, kBurst, kNeeded);
  EXPECT_EQ(weight.value(), 1.0) << "recovered";
}

TEST(RailWeight, LongBurstsCountTwice) {
  RailWeight weight;
  weight.update(0.5, kLongBurst, kNeeded);
  weight.update(0.5, kLongBurst, kNeeded);
  EXPECT_FALSE(weight.is_slow());
  weight.update(0.5, kLongBurst, kNeeded);
  EXPECT_TRUE(weight.is_slow());
}

TEST(RailWeight, IgnoresWhatSendersThatMeetDoToAPace) {
  RailWeight weight;
  for (const double share : {0.5, 0.9, 0.4, 0.6, 1.0, 0.7, 0.66, 0.3, 0.2, 0.7}) {
    weight.update(share, kBurst, kNeeded);
    EXPECT_EQ(weight.value(), 1.0);
  }
}

// A rail that gets what suits its weight is done with the others, whatever it could do.
TEST(RailWeight, OfARailThatWasTakenForSlowRises) {
  RailWeight weight;
  weight.set(0.5);
  for (int burst = 0; burst < 500; ++burst) {
    weight.update(std::min(weight.value(), 0.79), kBurst, kNeeded);
  }
  EXPECT_GT(weight.value(), 0.75);
}

TEST(CopyPool, GivesWhatFitsAndUsesItAgain) {
  CopyPool pool;
  std::vector<std::span<std::byte>> slabs;
  pool.on_slab([&](std::span<std::byte> slab) { slabs.push_back(slab); });
  for (const std::size_t bytes :
       {1U, 256U, 257U, 1024U, 1025U, 16384U, 16385U, 300'000U, 5'000'000U}) {
    SourceCopy* copy = pool.take(bytes);
    EXPECT_GE(copy->capacity(), bytes);
    EXPECT_LE(copy->capacity(), std::max<std::size_t>(256, 4 * bytes));
    EXPECT_TRUE(std::ranges::any_of(slabs, [&](std::span<std::byte> slab) {
      return copy->data() >= slab.data() &&
             copy->data() + copy->capacity() <= slab.data() + slab.size();
    }));
    SourceCopy* other = pool.take(bytes);
    EXPECT_TRUE(other->data() >= copy->data() + copy->capacity() ||
                other->data() + other->capacity() <= copy->data());
    const std::size_t count = slabs.size();
    pool.give(copy);
    EXPECT_EQ(pool.take(bytes), copy);
    EXPECT_EQ(slabs.size(), count);
  }
}

TEST(PieceTally, CompletesASignalOnceWheneverItComesAmongItsPieces) {
  for (std::uint32_t pieces = 0; pieces < 6; ++pieces) {
    for (std::uint32_t before = 0; before <= pieces; ++before) {
      PieceTally tally;
      for (std::uint32_t i = 0; i < before; ++i) {
        EXPECT_FALSE(tally.on_piece());
      }
      const auto answer = tally.on_signal(pieces);
      EXPECT_EQ(answer == PieceTally::Answer::Complete, before == pieces);
      for (std::uint32_t i = before; i < pieces; ++i) {
        EXPECT_TRUE(tally.may_wait());
        EXPECT_EQ(tally.on_piece(), i + 1 == pieces);
      }
    }
  }
}

TEST(PieceTally, RefusesASignalThatCannotBe) {
  PieceTally tally;
  EXPECT_FALSE(tally.on_piece());
  EXPECT_FALSE(tally.on_piece());
  EXPECT_EQ(tally.on_signal(1), PieceTally::Answer::Nonsense) << "two are here";
  EXPECT_EQ(tally.on_signal(kPiecesMax), PieceTally::Answer::Wait);
  EXPECT_EQ(tally.on_signal(kPiecesMax), PieceTally::Answer::Nonsense) << "said before";
  tally.on_recovery();
  EXPECT_EQ(tally.on_signal(1), PieceTally::Answer::Ignore);
  EXPECT_FALSE(tally.on_piece()) << "Force says when";
}

struct Named : Tokened {
  int value = 0;
};

TEST(Pool, FindsARecordByItsTokenUntilItIsGivenBack) {
  Pool<Named> pool;
  Named* first = pool.take();
  Named* second = pool.take();
  const std::uint64_t old = first->token();
  EXPECT_NE(old, 0U);
  EXPECT_NE(old, second->token());
  EXPECT_EQ(pool.find(old), first);
  *first = {};  // a record begins anew, its identity stays
  *second = *first;
  EXPECT_EQ(pool.find(old), first);
  EXPECT_EQ(pool.find(second->token()), second);
  pool.give(first);
  EXPECT_EQ(pool.find(old), nullptr);
  EXPECT_EQ(pool.find(first->token()), nullptr) << "is free";
  EXPECT_EQ(pool.take(), first);
  EXPECT_EQ(pool.find(old), nullptr) << "is another use";
  for (const std::uint64_t token : {std::uint64_t{0}, old + 2, ~std::uint64_t{0}}) {
    EXPECT_EQ(pool.find(token), nullptr);
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
