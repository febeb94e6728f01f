// weft-perf's patterns: who is told to talk to whom, and that both ends agree.
#include <gtest/gtest.h>

#include <algorithm>
#include <set>
#include <stdexcept>

#include "tools/perf/patterns.hpp"

namespace weft::perf {
namespace {

using Pes = std::vector<std::uint32_t>;

World world_of(std::uint32_t pe_count) {
  return {.pe_count = pe_count, .first = 0, .second = pe_count - 1, .seed = 5};
}

constexpr std::array kPatterns{Pattern::AllToAll, Pattern::Shuffled, Pattern::AllOthers,
                               Pattern::Incast,   Pattern::Pairs,    Pattern::Random,
                               Pattern::OneWay,   Pattern::BothWays};

TEST(PerfPatterns, BothEndsOfEveryPatternAgree) {
  for (const Pattern pattern : kPatterns) {
    for (std::uint32_t n = 1; n <= 9; ++n) {
      for (std::uint64_t step = 0; step < 5; ++step) {
        std::set<std::pair<std::uint32_t, std::uint32_t>> begun;
        std::set<std::pair<std::uint32_t, std::uint32_t>> expected;
        for (std::uint32_t pe = 0; pe < n; ++pe) {
          for (const std::uint32_t target : targets_of(pattern, world_of(n), pe, step)) {
            ASSERT_LT(target, n);
            begun.emplace(pe, target);
          }
          for (const std::uint32_t from : initiators_to(pattern, world_of(n), pe, step)) {
            expected.emplace(from, pe);
          }
        }
        EXPECT_EQ(begun, expected);
      }
    }
  }
}

TEST(PerfPatterns, AllToAllBeginsWithTheNextNeighbourAndEndsAtHome) {
  EXPECT_EQ(targets_of(Pattern::AllToAll, world_of(4), 1, 0), (Pes{2, 3, 0, 1}));
}

TEST(PerfPatterns, ShuffledNamesEveryPeOnceInAnOrderOfEachPesOwn) {
  std::set<Pes> orders;
  for (std::uint32_t pe = 0; pe < 8; ++pe) {
    Pes order = targets_of(Pattern::Shuffled, world_of(8), pe, 0);
    EXPECT_EQ(order, targets_of(Pattern::Shuffled, world_of(8), pe, 7)) << "the same in each step";
    orders.insert(order);
    std::ranges::sort(order);
    EXPECT_EQ(order, (Pes{0, 1, 2, 3, 4, 5, 6, 7}));
  }
  EXPECT_GE(orders.size(), 7U);
}

TEST(PerfPatterns, AllOthersLeavesOutOnlyItself) {
  EXPECT_EQ(targets_of(Pattern::AllOthers, world_of(4), 1, 0), (Pes{2, 3, 0}));
  EXPECT_TRUE(targets_of(Pattern::AllOthers, world_of(1), 0, 0).empty());
}

TEST(PerfPatterns, IncastGoesToPeZeroFromAllOthers) {
  EXPECT_EQ(initiators_to(Pattern::Incast, world_of(4), 0, 0), (Pes{1, 2, 3}));
  EXPECT_TRUE(targets_of(Pattern::Incast, world_of(4), 0, 0).empty());
}

TEST(PerfPatterns, PairsAreMutualAndTheOddOneRests) {
  for (std::uint32_t n = 2; n <= 9; ++n) {
    for (std::uint32_t pe = 0; pe < n / 2 * 2; ++pe) {
      const Pes partner = targets_of(Pattern::Pairs, world_of(n), pe, 0);
      ASSERT_EQ(partner.size(), 1U);
      EXPECT_EQ(targets_of(Pattern::Pairs, world_of(n), partner[0], 0), Pes{pe});
    }
  }
  EXPECT_TRUE(targets_of(Pattern::Pairs, world_of(5), 4, 0).empty());
}

TEST(PerfPatterns, RandomNeverMeetsItselfAndReachesEverybody) {
  std::set<std::uint32_t> met;
  for (std::uint64_t step = 0; step < 200; ++step) {
    const Pes target = targets_of(Pattern::Random, world_of(8), 3, step);
    ASSERT_EQ(target.size(), 1U);
    met.insert(target[0]);
  }
  EXPECT_EQ(met, (std::set<std::uint32_t>{0, 1, 2, 4, 5, 6, 7}));
}

TEST(PerfPatterns, UnknownNameListsTheKnownOnes) {
  EXPECT_EQ(parse_pattern("incast"), Pattern::Incast);
  EXPECT_THROW(static_cast<void>(parse_pattern("ring")), std::invalid_argument);
}

}  // namespace
}  // namespace weft::perf
