// The parts of weft-sim by themselves: faults of a command line, tables of measurements, traffic,
// and short runs whose times follow from a few numbers.
#include <gtest/gtest.h>

#include <algorithm>
#include <string>

#include "src/base/error.hpp"
#include "tools/sim/faults.hpp"
#include "tools/sim/prediction.hpp"
#include "tools/sim/reference.hpp"
#include "tools/sim/simulation.hpp"
#include "tools/sim/traffic.hpp"

namespace weft::sim {
namespace {

// One message of `bytes` between two PEs, over a NIC of 1 byte/ns.
Setup one_message(std::uint64_t bytes) {
  sim::Setup setup;
  setup.nodes = 2;
  setup.pes_per_node = 1;
  setup.nics = {1};
  setup.nic = {.bytes_per_ns = 1, .latency_ns = 100};
  setup.traffic.pattern = Pattern::Incast;
  setup.traffic.bytes = bytes;
  setup.windows = 1;
  setup.warm_up = 0;
  return setup;
}

TEST(SimulatedNics, AMessageTakesItsBytesOneCellAndTheLatency) {
  sim::Setup setup = one_message(64U << 10U);
  const double cell = 8U << 10U;
  EXPECT_DOUBLE_EQ(Simulation(setup).run().window_ns, 65536 + cell + 100);
  setup.nic.proxy_ns = 300;
  EXPECT_DOUBLE_EQ(Simulation(setup).run().window_ns, 65536 + cell + 100 + 300);
}

TEST(SimulatedNics, ASlowReceiverTakesItsOwnTime) {
  sim::Setup setup = one_message(64U << 10U);
  setup.slow.push_back({.pe = 0, .nic = 0, .factor = 0.5});
  const double cell = 8U << 10U;
  EXPECT_DOUBLE_EQ(Simulation(setup).run().window_ns, 2 * 65536 + cell + 100);
}

TEST(SimulatedNics, AnOverloadedReceiverLosesPartOfItsRate) {
  sim::Setup setup = one_message(1U << 20U);
  setup.nodes = 5;
  setup.traffic.steps = 16;
  setup.library = Library::Nvshmem;
  setup.policy = "single";
  const double even = Simulation(setup).run().window_ns;
  setup.nic.overload_rate = 0.5;
  setup.nic.overload_bytes = 256U << 10U;
  EXPECT_GT(Simulation(setup).run().window_ns, 1.8 * even);
}

TEST(SimulatedNics, FourSendersToOneReceiverWaitInItsQueue) {
  sim::Setup setup = one_message(64U << 10U);
  setup.nodes = 5;
  const Outcome outcome = Simulation(setup).run();
  EXPECT_GE(outcome.rx_queue_max, 3U * 65536);
  EXPECT_LE(outcome.rx_queue_max, 3U * 65536 + (16U << 10U));
  EXPECT_EQ(outcome.limit.part, Part::Rx);
  EXPECT_EQ(outcome.limit.pe, 0U);
  EXPECT_GT(outcome.limit.busy, 0.95);
}

TEST(SimulatedTraffic, EachPeSendsToEveryPeOfOtherNodesOnce) {
  for (const bool is_shuffled : {false, true}) {
    sim::Setup setup;
    setup.nodes = 3;
    setup.traffic.is_shuffled = is_shuffled;
    Traffic traffic(setup);
    for (std::uint32_t pe = 0; pe < setup.pe_count(); ++pe) {
      auto peers = traffic.peers_of(pe);
      std::ranges::sort(peers);
      EXPECT_EQ(std::ranges::unique(peers).size(), 0U);
      EXPECT_EQ(peers.size(), 8U);
      EXPECT_TRUE(std::ranges::none_of(peers, [&](auto to) { return setup.is_near(pe, to); }));
    }
  }
}

TEST(SimulatedTraffic, TokensGoToAsManyNodesAsTheirExpertsAreOn) {
  sim::Setup setup;
  setup.nodes = 4;
  setup.pes_per_node = 8;
  setup.traffic.pattern = Pattern::Moe;
  setup.traffic.bytes = 100;
  setup.traffic.moe = {.tokens = 50, .experts = 32, .top_k = 32, .zipf = 0};
  const auto count = [&](MoeMessages messages) {
    setup.traffic.moe.messages = messages;
    return Traffic(setup).posts_of(0);
  };
  EXPECT_EQ(count(MoeMessages::ByToken).size(), 50U * 24) << "all experts, but those of the node";
  EXPECT_EQ(count(MoeMessages::ByPeer).size(), 24U);
  const auto by_node = count(MoeMessages::ByNode);
  ASSERT_EQ(by_node.size(), 3U);
  EXPECT_EQ(by_node[0].peer, 8U) << "the PE with the same place on the next node";
  EXPECT_EQ(by_node[0].bytes, 5000U);
}

TEST(Sampling, IsExactWhereTimesAreALine) {
  EXPECT_DOUBLE_EQ(extrapolate({.few = 10, .many = 30}, 5 + 10 * 2, 5 + 30 * 2, 100), 5 + 100 * 2);
}

TEST(SimulatedFaults, AreParsedByPlace) {
  const SlowNic all = parse_slow("nic3@all:0.25", 8);
  EXPECT_FALSE(all.pe.has_value());
  EXPECT_EQ(all.nic, 3U);
  EXPECT_DOUBLE_EQ(all.factor, 0.25);
  EXPECT_EQ(parse_slow("n3.g2.nic1:.5", 8).pe, 26U);
  EXPECT_DOUBLE_EQ(parse_failed("n0.g1.nic0@2ms", 8).at_ns, 2e6);
  EXPECT_DOUBLE_EQ(parse_failed("nic0@all@1.5us", 8).at_ns, 1.5e3);
  for (const char* const wrong :
       {"", "nic0", "nic0@all", "n1.nic0:0.5", "nic0@all:-1", "nic0@all:x"}) {
    EXPECT_THROW((void)parse_slow(wrong, 8), Error) << wrong;
  }
  EXPECT_THROW((void)parse_failed("nic0@all@2", 8), Error);
}

TEST(Residuals, KeepMeanAndWorstRow) {
  Residuals residuals;
  residuals.add(1, 110, 100);
  residuals.add(2, 70, 100);
  EXPECT_DOUBLE_EQ(residuals.mean, 0.2);
  EXPECT_DOUBLE_EQ(residuals.most, 0.3);
  EXPECT_EQ(residuals.at_bytes, 2U);
}

}  // namespace
}  // namespace weft::sim
