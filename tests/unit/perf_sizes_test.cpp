// weft-perf's sizes: the sweep, the words of the command line, and the Pareto rule by seed.
#include <gtest/gtest.h>

#include <algorithm>
#include <stdexcept>
#include <vector>

#include "tools/perf/sizes.hpp"

namespace weft::perf {
namespace {

TEST(PerfSizes, SweepGoesByTheFactorUpToTheEnd) {
  EXPECT_EQ(size_sequence({.begin = 8, .end = 64, .factor = 2}),
            (std::vector<std::size_t>{8, 16, 32, 64}));
  EXPECT_EQ(size_sequence({.begin = 8, .end = 100, .factor = 4}),
            (std::vector<std::size_t>{8, 32}));
  EXPECT_EQ(size_sequence({.begin = 5, .end = 5, .factor = 2}), (std::vector<std::size_t>{5}));
}

TEST(PerfSizes, SweepEndsAtTheLargestNumberThereIs) {
  const std::size_t huge = ~std::size_t{0};
  EXPECT_EQ(size_sequence({.begin = huge / 2 + 1, .end = huge, .factor = 2}).size(), 1U);
}

TEST(PerfSizes, WordsMeanBytes) {
  EXPECT_EQ(parse_size("8"), 8U);
  EXPECT_EQ(parse_size("64K"), 65536U);
  EXPECT_EQ(parse_size("1m"), 1048576U);
  EXPECT_EQ(parse_size("2G"), std::size_t{2} << 30U);
  for (const char* wrong :
       {"", "K", "-1", "1.5K", "1T", "8 ", "99999999999999999999", "99999999999G"}) {
    EXPECT_THROW(static_cast<void>(parse_size(wrong)), std::invalid_argument) << wrong;
  }
}

TEST(PerfSizes, RuleIsFixedOrParetoWithTwoNumbers) {
  EXPECT_FALSE(parse_size_rule("fixed").pareto);
  const SizeRule rule = parse_size_rule("pareto:1.5:7");
  EXPECT_TRUE(rule.pareto);
  EXPECT_EQ(rule.alpha, 1.5);
  EXPECT_EQ(rule.seed, 7U);
  for (const char* wrong :
       {"", "pareto", "pareto:1.2", "pareto:0:1", "pareto:-1:1", "pareto:x:1", "normal"}) {
    EXPECT_THROW(static_cast<void>(parse_size_rule(wrong)), std::invalid_argument) << wrong;
  }
}

std::vector<std::size_t> sample(const SizeRule& rule, std::size_t row_size, std::uint64_t count) {
  std::vector<std::size_t> sizes;
  for (std::uint64_t i = 0; i < count; ++i) {
    sizes.push_back(rule.size_of({.source = 1, .dest = 2, .iteration = i}, row_size));
  }
  return sizes;
}

TEST(PerfSizes, ParetoIsTheSameForASeedAndDiffersBetweenSeeds) {
  const SizeRule one = parse_size_rule("pareto:1.2:1");
  const SizeRule two = parse_size_rule("pareto:1.2:2");
  EXPECT_EQ(sample(one, 65536, 100), sample(one, 65536, 100));
  EXPECT_NE(sample(one, 65536, 100), sample(two, 65536, 100));
}

TEST(PerfSizes, ParetoStaysInItsSpanAndHasItsMedian) {
  constexpr std::size_t kRow = 1U << 20U;
  std::vector<std::size_t> sizes = sample(parse_size_rule("pareto:1.2:3"), kRow, 20001);
  std::ranges::sort(sizes);
  EXPECT_GE(sizes.front(), kRow / SizeRule::kParetoSpan);
  EXPECT_EQ(sizes.back(), kRow);
  // The median of a Pareto distribution is its smallest value times 2^(1/alpha).
  const double median = static_cast<double>(sizes[10000]) / (static_cast<double>(kRow) / 64);
  EXPECT_NEAR(median, 1.782, 0.05);
}

TEST(PerfSizes, ParetoNeverGivesAnEmptyMessage) {
  for (std::size_t row = 1; row < 200; ++row) {
    for (const std::size_t size : sample(parse_size_rule("pareto:1.2:3"), row, 50)) {
      EXPECT_GE(size, 1U);
      EXPECT_LE(size, row);
    }
  }
}

}  // namespace
}  // namespace weft::perf
