// max/mean by the library's counters: what each PE says of an interval or a step, and what comes of
// it together.
#include <gtest/gtest.h>

#include <gmock/gmock.h>

#include "tools/perf/intervals.hpp"
#include "tools/perf/library_intervals.hpp"
#include "tools/perf/nic_groups.hpp"

namespace weft::perf {
namespace {

constexpr std::chrono::milliseconds kInterval(10);
constexpr std::int64_t kTenMs = 10'000'000;
constexpr std::uint64_t kBytes = 64U << 10U;
constexpr std::size_t kRails = 4;

// Two PEs of two nodes with four rails each: rows 0 to 3 are PE 0's, 4 to 7 PE 1's.
const LibraryTotals::Rows kRows{{0, 1, 2, 3}, {4, 5, 6, 7}};

LibraryColumns columns_of(std::uint32_t me) {
  LibraryColumns columns{.me = me};
  for (const std::uint32_t pe : {me, 1 - me}) {
    for (std::uint32_t rail = 0; rail < kRails; ++rail) {
      columns.rails.push_back({.pe = pe, .rail = rail});
    }
  }
  return columns;
}

std::vector<NicGroup> both_groups() {
  std::vector<NicGroup> groups;
  for (std::uint32_t pe = 0; pe < 2; ++pe) {
    groups.push_back({.node = pe,
                      .pe = pe,
                      .sends = true,
                      .receives = true,
                      .rows = kRows[pe],
                      .bytes_per_s = std::vector<double>(kRails, 0)});
  }
  return groups;
}

// A put over one's own rail `from` to the peer's rail `to`, in each step.
using Puts = std::vector<std::pair<std::size_t, std::size_t>>;

std::vector<CounterSample> samples_of_puts(const Puts& puts) {
  std::vector<CounterSample> samples{
      {.time_ns = 0, .begins = true, .nics = std::vector<NicBytes>(2 * kRails)}};
  for (const auto& [from, to] : puts) {
    CounterSample next = samples.back();
    next.begins = false;
    next.time_ns += kTenMs;
    next.nics[from].tx_bytes += kBytes;
    next.nics[kRails + to].tx_bytes += kBytes;
    samples.push_back(next);
  }
  return samples;
}

MomentReport::Groups judge_steps(const std::vector<std::vector<CounterSample>>& samples,
                                 StepEnd step_end = StepEnd::Barrier) {
  LibraryTotals totals(kRows, 2 * kRails, step_end);
  for (std::uint32_t pe = 0; pe < samples.size(); ++pe) {
    for (const LibraryInterval& interval : intervals_by_step(samples[pe], columns_of(pe))) {
      totals.add(pe, interval);
    }
  }
  MomentReport::Groups evenness;
  totals.judge(both_groups(), {.by_step = true, .piece_bytes = kStepPieceBytes}, 0, evenness);
  return evenness;
}

TEST(PerfLibraryIntervals, NicsThatTakeTurnsAreEvenOverTheRunAndUnevenInEachStep) {
  // Both PEs put to the same rail as their own, the next one in each step.
  const auto samples = samples_of_puts({{0, 0}, {1, 1}, {2, 2}, {3, 3}});
  for (std::size_t rail = 0; rail < kRails; ++rail) {
    EXPECT_EQ(samples.back().nics[rail].tx_bytes, kBytes);
  }
  const MomentReport::Groups evenness = judge_steps({samples, samples});
  for (const Evenness& direction : {evenness.of_pe.tx, evenness.of_pe.rx}) {
    EXPECT_EQ(direction.count, 8U);  // four steps of two PEs
    EXPECT_DOUBLE_EQ(direction.mean(), 4);
    EXPECT_DOUBLE_EQ(direction.worst, 4);
  }
}

TEST(PerfLibraryIntervals, WhatAPeReceivesIsWhatItsSendersPutInTheSameStep) {
  const auto puts = samples_of_puts({{0, 3}, {0, 1}});
  const auto none = samples_of_puts({{0, 0}});
  std::vector<CounterSample> idle(3, none.front());
  idle[1].begins = idle[2].begins = false;
  const MomentReport::Groups evenness = judge_steps({puts, idle});
  EXPECT_EQ(evenness.of_pe.tx.count, 2U);  // PE 0's NICs
  EXPECT_EQ(evenness.of_pe.rx.count, 2U);  // PE 1's
}

TEST(PerfLibraryIntervals, StepThatOnePeSaysNothingOfDoesNotCount) {
  const auto puts = samples_of_puts({{0, 0}, {1, 1}, {2, 2}});
  EXPECT_EQ(judge_steps({puts, {puts[0], puts[1]}}).of_pe.tx.count, 2U);
  EXPECT_EQ(judge_steps({puts, {puts[0]}}).of_pe.tx.count, 0U);
}

TEST(PerfLibraryIntervals, PartsKeepTheirNumbersWhereAPeLeftStepsOut) {
  const auto puts = samples_of_puts({{0, 0}});
  const auto both_parts = std::vector<CounterSample>{puts[0], puts[1], puts[0], puts[1]};
  const auto second_part = std::vector<CounterSample>{puts[0], puts[0], puts[1]};
  EXPECT_EQ(judge_steps({both_parts, second_part}).of_pe.tx.count, 2U);
}

TEST(PerfLibraryIntervals, StepsThatPesEndAloneAreJudgedByTheirOwnRails) {
  const auto puts = samples_of_puts({{0, 0}, {1, 1}});
  const MomentReport::Groups evenness = judge_steps({puts, {puts[0]}}, StepEnd::QuietAfterPuts);
  EXPECT_EQ(evenness.of_pe.tx.count, 2U);
  EXPECT_EQ(evenness.of_pe.rx.count, 0U);
}

TEST(PerfLibraryIntervals, GetsAreReceivedByOnesOwnRailAndSentByThePeers) {
  std::vector<CounterSample> gets(2, {.nics = std::vector<NicBytes>(2 * kRails)});
  gets[0].begins = true;
  gets[1].nics[1].rx_bytes = kBytes + 100;  // 100 of them are messages, which their sender counts
  gets[1].nics[kRails + 2].rx_bytes = kBytes;
  const auto changes = intervals_by_step(gets, columns_of(0));
  ASSERT_EQ(changes.size(), 1U);
  EXPECT_EQ(changes[0].rails[0].bytes.rx_bytes, kBytes);
  std::vector<CounterSample> idle(2, {.nics = std::vector<NicBytes>(2 * kRails)});
  idle[0].begins = true;
  const MomentReport::Groups evenness = judge_steps({gets, idle});
  EXPECT_EQ(evenness.of_pe.rx.count, 1U);
  EXPECT_EQ(evenness.of_pe.tx.count, 1U);
  EXPECT_EQ(judge_steps({gets, idle}, StepEnd::QuietAfterGets).of_pe.rx.count, 1U);
}

TEST(PerfLibraryIntervals, OnlyIntervalsBetweenLooksInTimeAreTold) {
  auto samples = samples_of_puts({{0, 0}, {1, 1}, {2, 2}, {3, 3}, {0, 0}});
  const auto numbers = [&] {
    std::vector<std::uint64_t> all;
    for (const auto& interval : intervals_by_time(samples, columns_of(0), kInterval)) {
      all.push_back(interval.number);
    }
    return all;
  };
  EXPECT_THAT(numbers(), ::testing::ElementsAre(1, 2, 3, 4, 5));
  samples[1].time_ns += kTenMs / 4;
  EXPECT_THAT(numbers(), ::testing::ElementsAre(1, 2, 3, 4, 5));
  samples[1].time_ns += 1;  // late
  EXPECT_THAT(numbers(), ::testing::ElementsAre(3, 4, 5));
  samples.erase(samples.begin() + 3);  // missed
  EXPECT_THAT(numbers(), ::testing::ElementsAre(5));
}

TEST(PerfLibraryIntervals, SurviveTheWayToPe0InPieces) {
  std::vector<LibraryInterval> intervals;
  for (std::uint64_t i = 0; i < 10; ++i) {
    intervals.push_back({.number = i << 40U,
                         .rails = {{.rail = {.pe = 300, .rail = 31},
                                    .bytes = {.tx_bytes = UINT64_MAX - i, .rx_bytes = 127 + i}}}});
  }
  intervals.push_back({.number = 1});
  std::vector<LibraryInterval> all;
  std::size_t pieces = 0;
  for (std::size_t next = 0; next < intervals.size(); ++pieces) {
    const auto some = parse_intervals(format_intervals(intervals, 60, next));
    all.insert(all.end(), some.begin(), some.end());
  }
  EXPECT_GT(pieces, 3U);
  ASSERT_EQ(all.size(), intervals.size());
  for (std::size_t i = 0; i < all.size(); ++i) {
    EXPECT_EQ(all[i].number, intervals[i].number);
    ASSERT_EQ(all[i].rails.size(), intervals[i].rails.size());
    for (std::size_t rail = 0; rail < all[i].rails.size(); ++rail) {
      EXPECT_EQ(all[i].rails[rail].rail.pe, 300U);
      EXPECT_EQ(all[i].rails[rail].bytes.tx_bytes, intervals[i].rails[rail].bytes.tx_bytes);
      EXPECT_EQ(all[i].rails[rail].bytes.rx_bytes, intervals[i].rails[rail].bytes.rx_bytes);
    }
  }
}

}  // namespace
}  // namespace weft::perf
