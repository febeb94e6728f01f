// weft-perf's tables and the balance of NICs: the layout that scripts read, and what max/mean is
// of.
#include <gtest/gtest.h>

#include <gmock/gmock.h>

#include "tools/balance/max_over_mean.hpp"
#include "tools/perf/balance.hpp"
#include "tools/perf/kernel_counters.hpp"
#include "tools/perf/statistics.hpp"
#include "tools/perf/table.hpp"

namespace weft::perf {
namespace {

using ::testing::HasSubstr;

TEST(PerfTable, AlltoallLooksLikeNvshmems) {
  EXPECT_EQ(
      format_header("alltoall_device", alltoall_columns()),
      "#alltoall_device\n"
      "size(B)     count     type      scope     latency(us)       algbw(GB/s)   busbw(GB/s)\n");
  EXPECT_EQ(format_row(alltoall_columns(),
                       {"1048576", "262144", "32-bit", "block", "57.177920", "18.339", "16.046"}),
            "1048576     262144    32-bit    block     57.177920         18.339        16.046\n");
}

TEST(PerfTable, BandwidthLooksLikeNvshmems) {
  EXPECT_EQ(format_header("shmem_put_bw_uni", bandwidth_columns()),
            "#shmem_put_bw_uni\nsize(B)     scope     BW (GB/sec)\n");
  EXPECT_EQ(format_row(bandwidth_columns(), {"1048576", "None", "243.827667"}),
            "1048576     None      243.827667\n");
}

TEST(PerfTable, TimesOfAllPesComeAfterTheKnownColumns) {
  const std::string known = format_header("alltoall", alltoall_columns());
  const std::string header = format_header("alltoall", with_spread(alltoall_columns()));
  EXPECT_TRUE(header.starts_with(known.substr(0, known.size() - 1)));
  EXPECT_TRUE(header.ends_with("   avg(us)       min(us)       max(us)\n"));
  EXPECT_EQ(spread_cells({.min = 1e-6, .average = 2e-6, .max = 3.5e-6}),
            (std::vector<std::string>{"2.000000", "1.000000", "3.500000"}));
}

TEST(PerfTable, CellTooLongForItsColumnStaysApart) {
  EXPECT_EQ(format_row(bandwidth_columns(), {"1234567890123", "None", "1"}),
            "1234567890123 None      1\n");
}

TEST(PerfTable, GigabyteIsAThousandMillion) {
  EXPECT_DOUBLE_EQ(gigabytes_per_s(2e9, 2), 1);
  EXPECT_DOUBLE_EQ(gigabytes_per_s(1, 0), 0);
  EXPECT_NEAR(alltoall_bus_bandwidth(18.339, 8), 16.046, 0.001);
}

TEST(PerfStatistics, MedianAndSpread) {
  EXPECT_EQ(median_of(std::vector<double>{5, 1, 9}), 5);
  EXPECT_EQ(median_of(std::vector<double>{4, 1, 9, 5}), 4);
  EXPECT_EQ(median_of(std::vector<double>{}), 0);
  const Spread spread = spread_of({1, 2, 6});
  EXPECT_EQ(spread.min, 1);
  EXPECT_EQ(spread.average, 3);
  EXPECT_EQ(spread.max, 6);
}

TEST(PerfStatistics, RowIsTheRepeatWhoseSlowestPeIsTheMedian) {
  const Spread median = median_of(std::vector<Spread>{{1, 2, 9}, {3, 4, 5}, {0, 1, 7}});
  EXPECT_EQ(median.min, 0);
  EXPECT_EQ(median.average, 1);
  EXPECT_EQ(median.max, 7);
  EXPECT_EQ(median_of(std::vector<Spread>{}).max, 0);
}

TEST(PerfBalance, MaxOverMean) {
  using Bytes = std::vector<std::uint64_t>;
  EXPECT_EQ(max_over_mean(Bytes{}), std::nullopt);
  EXPECT_EQ(max_over_mean(Bytes{0, 0}), std::nullopt);
  EXPECT_DOUBLE_EQ(*max_over_mean(Bytes{7, 7, 7}), 1);
  EXPECT_DOUBLE_EQ(*max_over_mean(Bytes{8, 0, 0, 0}), 4);
}

TEST(PerfBalance, MaxOverMeanRelativeToCapacities) {
  EXPECT_EQ(max_over_mean({}, {}), std::nullopt);
  EXPECT_EQ(max_over_mean({0, 0}, {1, 2}), std::nullopt);
  EXPECT_DOUBLE_EQ(*max_over_mean({5, 10, 10}, {1, 2, 2}), 1);
  EXPECT_DOUBLE_EQ(*max_over_mean({10, 10, 10}, {1, 2, 2}), 5.0 / 3);
}

PeReport pe_on(std::uint32_t node, std::vector<RailReport> rails) {
  return {.node = node,
          .host_key = "host" + std::to_string(node),
          .rails = std::move(rails),
          .devices = {{"lo", {1, 1}}, {"nic0", {110, 220}}, {"nic1", {330, 440}}}};
}

RailReport rail(std::string nic, std::uint64_t tx, std::uint64_t rx) {
  return {.nic = nic, .address = "10.0.0." + nic.substr(3), .bytes = {tx, rx}};
}

TEST(PerfBalance, BytesBetweenPesAreThePutsOfTheOneAndTheGetsOfTheOther) {
  PeReport first = pe_on(0, {});
  PeReport second = pe_on(1, {});
  first.changes = {{{.pe = 0}, {5 + 7, 100}}, {{.pe = 1}, {5, 100}}, {{.pe = 1}, {.tx_bytes = 7}}};
  second.changes = {{{.pe = 0}, {30, 2}}};
  const BalanceReport report = make_balance_report({first, second});
  EXPECT_EQ(report.peers, (std::vector<std::vector<std::uint64_t>>{{0, 5 + 7 + 2}, {100 + 30, 0}}));
}

TEST(PerfBalance, RailsOfOneNicAreAddedUp) {
  const BalanceReport report = make_balance_report(
      {pe_on(0, {rail("nic0", 10, 20), rail("nic1", 30, 40)}), pe_on(0, {rail("nic0", 1, 2)})});
  ASSERT_EQ(report.nics.size(), 2U);
  EXPECT_EQ(report.nics[0].library.tx_bytes, 11U);
  EXPECT_EQ(report.nics[0].library.rx_bytes, 22U);
  EXPECT_EQ(report.nics[0].pes, (std::vector<std::uint32_t>{0, 1}));
  EXPECT_EQ(report.nics[0].kernel->tx_bytes, 110U);
  EXPECT_DOUBLE_EQ(*report.kernel.tx, 330.0 / 220.0);
}

TEST(PerfBalance, OnlyNicsOfPesThatTakePartCount) {
  // PE 0 puts to PE 1, which only acknowledges.
  const BalanceReport report =
      make_balance_report({pe_on(0, {rail("nic0", 1000, 5), rail("nic1", 1000, 0)}),
                           pe_on(1, {rail("nic0", 5, 1500), rail("nic1", 0, 500)})});
  EXPECT_DOUBLE_EQ(*report.library.tx, 1);
  EXPECT_DOUBLE_EQ(*report.library.rx, 1.5);
  EXPECT_FALSE(report.nics[2].sends);
  EXPECT_TRUE(report.nics[2].receives);
}

TEST(PerfBalance, KernelIsSilentWhereRowsShareADevice) {
  PeReport pe = pe_on(0, {{.nic = "lo", .address = "127.0.0.1", .bytes = {1, 1}},
                          {.nic = "lo", .address = "127.0.0.2", .bytes = {1, 1}}});
  const BalanceReport report = make_balance_report({pe});
  ASSERT_EQ(report.nics.size(), 2U);
  EXPECT_FALSE(report.nics[0].kernel.has_value());
  EXPECT_FALSE(report.kernel.tx.has_value());
  EXPECT_THAT(format_balance(report), HasSubstr("tx max/mean library 1.000 kernel -"));
}

TEST(PerfKernelCounters, ReadsProcNetDev) {
  constexpr const char* kText =
      "Inter-|   Receive                                                |  Transmit\n"
      " face |bytes    packets errs drop fifo frame compressed multicast|bytes    packets errs\n"
      "    lo:     100       1    0    0    0     0          0         0      200       1    0    "
      "0\n"
      "  nic0:4294967297       1    0    0    0     0          0         0 99 1 0 0 0 0 0 0\n";
  const std::vector<std::string> names = interfaces_in(kText);
  ASSERT_THAT(names, testing::ElementsAre("lo", "nic0"));
  std::vector<NicBytes> samples(names.size());
  read_net_dev(kText, names, samples);
  EXPECT_EQ(samples[0].rx_bytes, 100U);
  EXPECT_EQ(samples[0].tx_bytes, 200U);
  EXPECT_EQ(samples[1].rx_bytes, 4294967297U);
}

}  // namespace
}  // namespace weft::perf
