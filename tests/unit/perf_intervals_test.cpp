// weft-perf's balance in time: max/mean per interval, the share of the rails, rates of NICs.
#include <gtest/gtest.h>

#include <stdexcept>

#include <gmock/gmock.h>

#include "tools/perf/counter_sampler.hpp"
#include "tools/perf/intervals.hpp"
#include "tools/perf/kernel_counters.hpp"
#include "tools/perf/library_intervals.hpp"
#include "tools/perf/nic_groups.hpp"
#include "tools/perf/nic_rates.hpp"
#include "tools/perf/rail_share.hpp"

namespace weft::perf {
namespace {

constexpr std::int64_t kTenMs = 10'000'000;
constexpr std::uint64_t kFull = 50'000;  // what 5e6 bytes/s carry in 10 ms
constexpr double kRate = 5e6;

// Samples 10 ms apart; each row is what the NICs received in an interval.
std::vector<CounterSample> samples_of(const std::vector<std::vector<std::uint64_t>>& received) {
  const std::size_t nic_count = received.front().size();
  std::vector<CounterSample> samples{
      {.time_ns = 1'000, .begins = true, .nics = std::vector<NicBytes>(nic_count)}};
  for (const std::vector<std::uint64_t>& row : received) {
    CounterSample next = samples.back();
    next.begins = false;
    next.time_ns += kTenMs;
    for (std::size_t nic = 0; nic < nic_count; ++nic) {
      next.nics[nic].rx_bytes += row[nic];
    }
    samples.push_back(next);
  }
  return samples;
}

IntervalRule by_time(std::size_t nic_count, double bytes_per_s = kRate) {
  return {.longest_ns = 2 * kTenMs, .bytes_per_s = std::vector<double>(nic_count, bytes_per_s)};
}

Evenness rx_of(const std::vector<CounterSample>& samples, const IntervalRule& rule) {
  std::vector<std::size_t> all(samples.front().nics.size());
  for (std::size_t i = 0; i < all.size(); ++i) {
    all[i] = i;
  }
  return evenness_of(samples, all, &NicBytes::rx_bytes, rule);
}

TEST(PerfIntervals, EvenOverTheRunIsToldApartFromEvenAtEachMoment) {
  const std::vector<std::vector<std::uint64_t>> in_turn{
      {kFull, 0, 0, 0}, {0, kFull, 0, 0}, {0, 0, kFull, 0}, {0, 0, 0, kFull}};
  const auto samples = samples_of(in_turn);
  // The totals are equal ...
  for (const NicBytes& nic : samples.back().nics) {
    EXPECT_EQ(nic.rx_bytes, kFull);
  }
  // ... and three of four NICs wait in every interval.
  const Evenness uneven = rx_of(samples, by_time(4));
  EXPECT_EQ(uneven.count, 4U);
  EXPECT_DOUBLE_EQ(uneven.mean(), 4);
  EXPECT_DOUBLE_EQ(uneven.worst, 4);
  const std::vector<std::uint64_t> together(4, kFull);
  const Evenness even = rx_of(samples_of({together, together}), by_time(4));
  EXPECT_EQ(even.count, 2U);
  EXPECT_DOUBLE_EQ(even.mean(), 1);
  EXPECT_DOUBLE_EQ(even.worst, 1);
}

TEST(PerfIntervals, MeanAndWorstAreOverTheIntervalsThatCount) {
  const Evenness evenness = rx_of(
      samples_of({{kFull, kFull}, {kFull, 0}, {0, 0}, {kFull / 2 - 1, 0}, {kFull / 2, kFull / 2}}),
      by_time(2));
  EXPECT_EQ(evenness.count, 3U);
  EXPECT_DOUBLE_EQ(evenness.mean(), (1.0 + 2.0 + 1.0) / 3);
  EXPECT_DOUBLE_EQ(evenness.worst, 2);
}

TEST(PerfIntervals, WhereNoRateIsKnownTheBusiestNicMustHaveCarriedAPiece) {
  const Evenness evenness =
      rx_of(samples_of({{kPieceBytes - 1, 0}, {kPieceBytes, 0}, {kPieceBytes, kPieceBytes}}),
            by_time(2, 0));
  EXPECT_EQ(evenness.count, 2U);
  EXPECT_DOUBLE_EQ(evenness.mean(), 1.5);
}

TEST(PerfIntervals, SlowNicThatCarriesItsShareIsEven) {
  IntervalRule rule = by_time(2);
  rule.bytes_per_s[1] = kRate / 2;
  const Evenness even = rx_of(samples_of({{kFull, kFull / 2}}), rule);
  EXPECT_DOUBLE_EQ(even.mean(), 1);
  const Evenness equal_bytes = rx_of(samples_of({{kFull / 2, kFull / 2}}), rule);
  EXPECT_DOUBLE_EQ(equal_bytes.mean(), 1.5);
}

TEST(PerfIntervals, LateSamplesAndBeginningsSayNothing) {
  auto samples = samples_of({{kFull, 0}, {kFull, 0}, {kFull, 0}});
  samples[1].time_ns -= kTenMs / 2;  // its interval is short, the next one 15 ms: both still count
  EXPECT_EQ(rx_of(samples, by_time(2)).count, 3U);
  samples[3].time_ns += 2 * kTenMs;
  EXPECT_EQ(rx_of(samples, by_time(2)).count, 2U);
  samples[2].begins = true;
  EXPECT_EQ(rx_of(samples, by_time(2)).count, 1U);
}

TEST(PerfIntervals, StepWithFewerPiecesThanNicsSaysNothing) {
  const IntervalRule rule{.by_step = true, .piece_bytes = 100};
  const Evenness evenness =
      rx_of(samples_of({{100, 0, 0, 0}, {200, 100, 0, 100}, {100, 100, 100, 100}}), rule);
  EXPECT_EQ(evenness.count, 2U);
  EXPECT_DOUBLE_EQ(evenness.mean(), 1.5);
  EXPECT_DOUBLE_EQ(evenness.worst, 2);
}

TEST(PerfIntervals, OneNicIsNoGroup) {
  EXPECT_EQ(rx_of(samples_of({{kFull}}), by_time(1)).count, 0U);
}

TEST(PerfRailShare, NeedIsThatOfTheBusiestDirectionSpreadOverThePesNics) {
  // Two PEs with two NICs each of 100 bytes/s; PE 1 receives 600 bytes.
  const std::vector<PeLoad> pes{{.nics = {0, 1}, .bytes = {.tx_bytes = 400}},
                                {.nics = {2, 3}, .bytes = {200, 600}}};
  const RailShare share = share_of_rails(pes, {100, 100, 100, 100}, 4);
  EXPECT_DOUBLE_EQ(share.needed_s, 3);
  EXPECT_DOUBLE_EQ(share.share(), 0.75);
}

TEST(PerfRailShare, NicOfSeveralPesNeedsTheSum) {
  const std::vector<PeLoad> pes{{.nics = {0}, .bytes = {.tx_bytes = 100}},
                                {.nics = {0, 1}, .bytes = {.tx_bytes = 200}}};
  EXPECT_DOUBLE_EQ(share_of_rails(pes, {100, 100}, 1).needed_s, 2);
}

TEST(PerfRailShare, SlowNicIsExpectedToCarryLess) {
  const std::vector<PeLoad> pes{{.nics = {0, 1}, .bytes = {.tx_bytes = 300}}};
  EXPECT_DOUBLE_EQ(share_of_rails(pes, {100, 50}, 4).share(), 0.5);
}

TEST(PerfNicRates, ReadsRatesAsTheLabDoes) {
  EXPECT_EQ(parse_rate("40mbit"), 40'000'000U);
  EXPECT_EQ(parse_rate("2.5gbit"), 2'500'000'000U);
  EXPECT_EQ(parse_rate("800kbit"), 800'000U);
  EXPECT_EQ(parse_rate("1000"), 1000U);
  for (const char* wrong : {"", "fast", "40mb", "-1mbit", "0", "40mbit/s"}) {
    EXPECT_THROW(static_cast<void>(parse_rate(wrong)), std::invalid_argument) << wrong;
  }
}

TEST(PerfNicRates, FramesOfTcpHoldTheirHeaders) {
  EXPECT_DOUBLE_EQ(tcp_payload_share(1500), 1448.0 / 1514.0);
  EXPECT_DOUBLE_EQ(tcp_payload_share(0), 1);
}

TEST(PerfNicRates, LabsLimitsAreByAddress) {
  const auto rates = parse_lab_rates(
      R"({"hosts": [{"nics": [{"address": "10.88.0.1", "rate_bits_per_s": 40000000},
                              {"address": "10.88.0.2", "rate_bits_per_s": null}]}]})");
  EXPECT_THAT(rates, ::testing::ElementsAre(::testing::Pair("10.88.0.1", 40'000'000U),
                                            ::testing::Pair("10.88.0.2", 0U)));
  EXPECT_TRUE(parse_lab_rates("").empty());
  EXPECT_TRUE(parse_lab_rates("{}").empty());
}

TEST(PerfCounterSampler, FillsTheNamedInterfacesInWhateverOrderTheyStand) {
  std::vector<NicBytes> samples(3, {.tx_bytes = 7, .rx_bytes = 7});
  read_net_dev(
      "Inter-|   Receive                                                |  Transmit\n"
      " face |bytes    packets errs drop fifo frame compressed multicast|bytes    packets errs\n"
      "  nic1: 11 1 0 0 0 0 0 0 12 1 0 0 0 0 0 0\n"
      "  nic9: 91 1 0 0 0 0 0 0 92 1 0 0 0 0 0 0\n"
      "  nic0:4294967297 1 0 0 0 0 0 0 2 1 0 0 0 0 0 0\n",
      {"nic0", "nic1", "gone"}, samples);
  EXPECT_EQ(samples[0].rx_bytes, 4294967297U);
  EXPECT_EQ(samples[0].tx_bytes, 2U);
  EXPECT_EQ(samples[1].rx_bytes, 11U);
  EXPECT_EQ(samples[1].tx_bytes, 12U);
  EXPECT_EQ(samples[2].rx_bytes, 7U);
}

TEST(PerfCounterSampler, LooksWhileItIsAskedToAndNamesTheDevicesOfThisHost) {
  DeviceFiles files;
  CounterSampler sampler([&] { return files.read(); }, std::chrono::milliseconds(1),
                         {.bytes_max = 1U << 20U});
  for (int part = 0; part < 2; ++part) {
    sampler.begin();
    std::this_thread::sleep_for(20 * sampler.interval());
    sampler.end();
  }
  const auto& samples = sampler.log().samples();
  ASSERT_GE(samples.size(), 4U);
  EXPECT_EQ(std::ranges::count(samples, true, &CounterSample::begins), 2);
  for (std::size_t i = 1; i < samples.size(); ++i) {
    EXPECT_GT(samples[i].time_ns, samples[i - 1].time_ns);
    EXPECT_EQ(samples[i].nics.size(), files.names().size());
  }
  EXPECT_GT(sampler.log().look_s(), 0);
}

TEST(PerfCounterSampler, LooksAreNotBeforeTheMultiplesOfTheIntervalByTheJobsClock) {
  constexpr std::chrono::milliseconds kInterval(4);
  CounterSampler sampler([] { return std::vector<NicBytes>(1); }, kInterval,
                         {.bytes_max = 1U << 20U, .clock_offset = std::chrono::microseconds(1234)});
  sampler.begin();
  std::this_thread::sleep_for(10 * kInterval);
  sampler.end();
  const auto& samples = sampler.log().samples();
  ASSERT_GE(samples.size(), 2U);
  for (std::size_t i = 2; i < samples.size(); ++i) {
    const std::int64_t interval = std::chrono::nanoseconds(kInterval).count();
    EXPECT_GT(samples[i].time_ns / interval, samples[i - 1].time_ns / interval);
  }
}

TEST(PerfStepSampler, LooksAtTheEndOfEachStep) {
  std::uint64_t sent = 0;
  StepSampler sampler([&] { return std::vector<NicBytes>{{.tx_bytes = sent}}; },
                      {.bytes_max = 1U << 20U});
  sampler.begin();
  for (int step = 0; step < 3; ++step) {
    sent += 10;
    std::this_thread::sleep_for(std::chrono::milliseconds(1));
    sampler.end_step();
  }
  const auto& samples = sampler.log().samples();
  ASSERT_EQ(samples.size(), 4U);
  EXPECT_TRUE(samples[0].begins);
  EXPECT_EQ(samples[3].nics[0].tx_bytes, 30U);
  EXPECT_TRUE(sampler.has_long_steps());
  sampler.begin_step();
  sampler.end_step();
  ASSERT_EQ(samples.size(), 6U);
  EXPECT_TRUE(samples[4].begins);
}

TEST(PerfStepSampler, StepsShorterThanTwentyLooksCanBeForgotten) {
  StepSampler sampler(
      [] {
        std::this_thread::sleep_for(std::chrono::milliseconds(1));
        return std::vector<NicBytes>(1);
      },
      {.bytes_max = 1U << 20U});
  for (int part = 0; part < 2; ++part) {
    sampler.begin();
    for (int step = 0; step < 5; ++step) {
      sampler.end_step();
    }
    EXPECT_FALSE(sampler.has_long_steps());
    sampler.forget_part();
  }
  const auto& samples = sampler.log().samples();
  ASSERT_EQ(samples.size(), 2U);  // parts keep their numbers
  EXPECT_TRUE(samples[0].begins && samples[1].begins);
}

NicReport nic_of(std::uint32_t node, std::uint32_t pe, const std::string& name) {
  return {.node = node,
          .nic = name,
          .pes = {pe},
          .kernel = NicBytes{},
          .sends = true,
          .receives = node == 1,
          .rate = {.bits_per_s = 40'000'000}};
}

TEST(PerfNicGroups, GroupsAreTheNicsOfEachPeAndThoseOfANode) {
  BalanceReport report{.nics = {nic_of(0, 0, "a"), nic_of(0, 0, "b"), nic_of(0, 1, "c"),
                                nic_of(0, 1, "d"), nic_of(1, 2, "a")}};
  const auto groups = parse_groups(format_groups(groups_of(report, CountedBy::Kernel)));
  ASSERT_EQ(groups.size(), 3U);  // one NIC is no group, alone on its node neither
  EXPECT_EQ(groups[0].nics, (std::vector<std::string>{"a", "b"}));
  EXPECT_EQ(groups[1].nics, (std::vector<std::string>{"c", "d"}));
  EXPECT_TRUE(groups[2].is_node);
  EXPECT_EQ(groups[2].nics.size(), 4U);
  EXPECT_FALSE(groups[2].receives);
  EXPECT_EQ(groups[2].bytes_per_s, std::vector<double>(4, 5e6));
  report.nics[0].kernel.reset();  // a device of several rows
  EXPECT_EQ(groups_of(report, CountedBy::Kernel).size(), 2U);
  EXPECT_EQ(groups_of(report, CountedBy::Library).size(), 3U);  // its rows are apart all the same
  EXPECT_EQ(groups_of(report, CountedBy::Library)[1].rows, (std::vector<std::size_t>{2, 3}));
  EXPECT_EQ(groups_of(report, CountedBy::Library)[1].pe, 1U);
}

TEST(PerfNicGroups, WhatTheNodesFoundIsAddedUp) {
  const std::vector<NicGroup> groups{
      {.node = 0, .receives = true, .nics = {"b", "c"}, .bytes_per_s = {kRate, kRate}},
      {.node = 1, .receives = true, .nics = {"b", "c"}, .bytes_per_s = {kRate, kRate}}};
  const auto look = [&](std::uint32_t node, std::uint64_t b, std::uint64_t c) {
    const auto samples = samples_of({{9, b, c}});
    return format_moments(judge_moments({.node = node,
                                         .names = {"a", "b", "c"},
                                         .by_time = samples,
                                         .by_step = samples,
                                         .interval_s = 0.01,
                                         .look_s = 1e-5 * node},
                                        groups));
  };
  MomentReport moments;
  add_moments(look(0, kFull, kFull), moments);
  add_moments(look(1, kFull, 0), moments);
  for (const MomentReport::Counters& counters : {moments.by_time, moments.by_step}) {
    EXPECT_EQ(counters.kernel.of_pe.rx.count, 2U);
    EXPECT_DOUBLE_EQ(counters.kernel.of_pe.rx.mean(), 1.5);
    EXPECT_DOUBLE_EQ(counters.kernel.of_pe.rx.worst, 2);
    EXPECT_EQ(counters.kernel.of_pe.tx.count, 0U);
    EXPECT_EQ(counters.library.of_pe.rx.count, 0U);
  }
  EXPECT_DOUBLE_EQ(moments.interval_s, 0.01);
  EXPECT_DOUBLE_EQ(moments.look_s, 1e-5);
}

TEST(PerfNicGroups, StepThatAPeEndedAloneTellsOfItsOwnOperationsOnly) {
  const NicGroup mine{.pe = 1, .sends = true, .receives = true};
  const NicGroup node{.is_node = true, .sends = true, .receives = true};
  for (const auto direction : kBothDirections) {
    const bool is_tx = direction == &NicBytes::tx_bytes;
    EXPECT_TRUE(is_judged(mine, direction, StepEnd::Barrier, 0));
    EXPECT_TRUE(is_judged(node, direction, StepEnd::Barrier, 0));
    EXPECT_EQ(is_judged(mine, direction, StepEnd::QuietAfterPuts, 1), is_tx);
    EXPECT_EQ(is_judged(mine, direction, StepEnd::QuietAfterGets, 1), !is_tx);
    EXPECT_FALSE(is_judged(mine, direction, StepEnd::QuietAfterPuts, 0));
    EXPECT_FALSE(is_judged(node, direction, StepEnd::QuietAfterPuts, 1));
    EXPECT_FALSE(is_judged({.pe = 1}, direction, StepEnd::Barrier, 1));
  }
}

}  // namespace
}  // namespace weft::perf
