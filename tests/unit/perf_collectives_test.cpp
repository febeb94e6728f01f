// weft-perf's collectives without a job: what a row's size means, and that --verify of reductions
// finds what is wrong.
#include <gtest/gtest.h>

#include <array>
#include <complex>
#include <span>
#include <vector>

#include "tools/perf/collective_shape.hpp"
#include "tools/perf/reduction_values.hpp"

namespace weft::perf {
namespace {

constexpr std::array kBlockwise{Collective::Alltoall, Collective::Fcollect, Collective::Collect};

TEST(PerfCollectiveShape, BlocksLieSideBySideAndFillDest) {
  for (const Collective collective : kBlockwise) {
    for (std::uint32_t n = 1; n <= 9; ++n) {
      for (std::size_t count = 1; count <= 5; ++count) {
        const CollectiveShape shape = shape_for(collective, n, 8, count * 8 * n);
        ASSERT_EQ(shape.count, count);
        std::size_t end = 0;
        for (std::uint32_t pe = 0; pe < n; ++pe) {
          EXPECT_EQ(shape.block_from(pe).offset, end);
          end += shape.block_from(pe).size;
          EXPECT_LE(shape.source_bytes(pe), shape.source_bytes(0));
        }
        EXPECT_EQ(end, shape.dest_bytes());
        EXPECT_EQ(end, count * 8 * n);
      }
    }
  }
}

TEST(PerfCollectiveShape, CollectsLengthsDiffer) {
  const CollectiveShape shape = shape_for(Collective::Collect, 3, 4, 120);
  EXPECT_EQ(shape.source_bytes(0), 44U);
  EXPECT_EQ(shape.source_bytes(1), 36U);
  EXPECT_EQ(shape.source_bytes(2), 40U);  // it has no neighbour
}

TEST(PerfCollectiveShape, SizeOfARowIsThatOfTheLargerBuffer) {
  EXPECT_EQ(shape_for(Collective::Alltoall, 8, 4, 1048576).count, 32768U);
  EXPECT_EQ(shape_for(Collective::Broadcast, 8, 4, 1048576).count, 262144U);
  EXPECT_EQ(shape_for(Collective::Reduction, 8, 8, 1048576).count, 131072U);
  EXPECT_EQ(shape_for(Collective::Fcollect, 8, 4, 16).count, 0U);
}

TEST(PerfCollectiveShape, BusBandwidthIsWhatTheWiresCarry) {
  EXPECT_DOUBLE_EQ(bus_factor(Collective::Alltoall, 8), 0.875);
  EXPECT_DOUBLE_EQ(bus_factor(Collective::Fcollect, 4), 0.75);
  EXPECT_DOUBLE_EQ(bus_factor(Collective::Collect, 4), 0.75);
  EXPECT_DOUBLE_EQ(bus_factor(Collective::Reduction, 8), 1.75);
  EXPECT_DOUBLE_EQ(bus_factor(Collective::Broadcast, 8), 1);
}

constexpr std::size_t kElements = 40;

template <typename T>
std::vector<T> contribution(const ReductionCase& what, std::uint32_t pe) {
  std::vector<T> elements(kElements);
  fill_contribution(std::as_writable_bytes(std::span(elements)), what, pe);
  return elements;
}

// The sum as the test adds it up, in another order than the checker.
template <typename T>
std::vector<T> sum_backwards(const ReductionCase& what, std::uint32_t pe_count) {
  std::vector<T> sum(kElements);
  for (std::uint32_t pe = pe_count; pe-- > 0;) {
    const std::vector<T> mine = contribution<T>(what, pe);
    for (std::size_t i = 0; i < kElements; ++i) {
      sum[i] = static_cast<T>(sum[i] + mine[i]);
    }
  }
  return sum;
}

template <typename T>
PayloadCheck check(const std::vector<T>& result, const ReductionCase& what, std::uint32_t pes) {
  return check_reduction(std::as_bytes(std::span(result)), what, pes);
}

TEST(PerfReductionValues, RightSumsAreRightInAnyOrder) {
  for (std::uint32_t n = 1; n <= 9; ++n) {
    const ReductionCase floats{.type = WEFT_FLOAT, .round = n};
    EXPECT_TRUE(check(sum_backwards<float>(floats, n), floats, n).is_right());
    const ReductionCase shorts{.type = WEFT_UINT16, .round = n};
    EXPECT_TRUE(check(sum_backwards<std::uint16_t>(shorts, n), shorts, n).is_right());
  }
}

TEST(PerfReductionValues, ProductOfComplexNumbersIsExact) {
  using Complex = std::complex<float>;
  const ReductionCase what{.type = WEFT_COMPLEX_FLOAT, .reduction = WEFT_PROD};
  const std::vector<Complex> first = contribution<Complex>(what, 0);
  const std::vector<Complex> second = contribution<Complex>(what, 1);
  std::vector<Complex> product;
  for (std::size_t i = 0; i < kElements; ++i) {
    product.push_back(second[i] * first[i]);
  }
  EXPECT_TRUE(check(product, what, 2).is_right());
}

TEST(PerfReductionValues, EachWrongElementIsFoundWithAllItsBytes) {
  const ReductionCase what{.type = WEFT_INT32};
  for (std::size_t index = 0; index < kElements; ++index) {
    std::vector<std::uint32_t> sum = sum_backwards<std::uint32_t>(what, 3);
    sum[index] ^= 1U << index % 32;
    const PayloadCheck found = check(sum, what, 3);
    EXPECT_EQ(found.wrong_bytes, 4U);
    EXPECT_EQ(found.first_wrong_offset, 4 * index);
  }
}

TEST(PerfReductionValues, MissingPeOrAnotherRoundIsFound) {
  for (const weft_reduction reduction : {WEFT_XOR, WEFT_SUM, WEFT_PROD}) {
    const ReductionCase what{.type = WEFT_INT64, .reduction = reduction, .round = 1};
    const ReductionCase later{.type = WEFT_INT64, .reduction = reduction, .round = 2};
    const auto alone = contribution<std::uint64_t>(what, 0);
    EXPECT_TRUE(check(alone, what, 1).is_right());
    EXPECT_GT(check(alone, what, 2).wrong_bytes, 8 * kElements * 9 / 10);
    EXPECT_GT(check(alone, later, 1).wrong_bytes, 8 * kElements * 9 / 10);
  }
}

TEST(PerfReductionValues, BitsAreOfIntegersAndOrderIsOfRealNumbers) {
  EXPECT_TRUE(is_allowed(WEFT_XOR, WEFT_UINT8));
  EXPECT_FALSE(is_allowed(WEFT_AND, WEFT_DOUBLE));
  EXPECT_TRUE(is_allowed(WEFT_MIN, WEFT_LONG_DOUBLE));
  EXPECT_FALSE(is_allowed(WEFT_MAX, WEFT_COMPLEX_DOUBLE));
  EXPECT_TRUE(is_allowed(WEFT_PROD, WEFT_COMPLEX_FLOAT));
}

TEST(PerfReductionValues, SizesAreThoseOfTheTypes) {
  EXPECT_EQ(size_of(WEFT_INT8), 1U);
  EXPECT_EQ(size_of(WEFT_DOUBLE), 8U);
  EXPECT_EQ(size_of(WEFT_LONG_DOUBLE), sizeof(long double));
  EXPECT_EQ(size_of(WEFT_COMPLEX_DOUBLE), 16U);
}

}  // namespace
}  // namespace weft::perf
