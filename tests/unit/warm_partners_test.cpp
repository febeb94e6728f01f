// Whose connections are opened at init.
#include <gtest/gtest.h>

#include <bit>
#include <cstdint>
#include <numeric>
#include <vector>

#include <gmock/gmock.h>

#include "src/runtime/warm_peers.hpp"

namespace weft::runtime {
namespace {

using collectives::partners_of;
using collectives::TeamMembers;
using ::testing::ElementsAre;
using ::testing::SizeIs;

// The team of all PEs, as PE `me` sees it.
TeamMembers team(std::uint32_t me, std::uint32_t pes, std::uint32_t pes_per_node) {
  std::vector<Pe> all;
  std::vector<std::uint32_t> node_of;
  for (std::uint32_t pe = 0; pe < pes; ++pe) {
    all.emplace_back(pe);
    node_of.push_back(pe / pes_per_node);
  }
  return {Pe(me), all, node_of};
}

TEST(WarmPartners, AreThePesWithThisPlaceAtPowersOfTwo) {
  EXPECT_THAT(partners_of(team(9, 64, 8)), ElementsAre(Pe(17), Pe(1), Pe(25), Pe(57), Pe(41)));
}

TEST(WarmPartners, OfASmallerNodeAreThereToo) {
  EXPECT_THAT(partners_of(team(3, 6, 4)), ElementsAre(Pe(5))) << "its node has 2 PEs";
}

TEST(WarmPartners, AreMutual) {
  for (const std::uint32_t nodes : {2U, 3U, 5U, 8U, 13U}) {
    for (std::uint32_t me = 0; me < 4 * nodes; ++me) {
      for (const Pe partner : partners_of(team(me, 4 * nodes, 4))) {
        EXPECT_THAT(partners_of(team(partner.value, 4 * nodes, 4)), ::testing::Contains(Pe(me)));
        EXPECT_NE(partner.value / 4, me / 4) << "of another node";
      }
    }
  }
}

TEST(WarmPartners, AreLogarithmicInTheNodes) {
  for (std::uint32_t nodes = 1; nodes <= 1024; nodes *= 2) {
    const auto rounds = static_cast<std::size_t>(std::bit_width(nodes) - 1);
    EXPECT_LE(partners_of(team(0, nodes * 8, 8)).size(), 2 * rounds);
  }
}

TEST(WarmPartners, AreAllPeersWhileTheirConnectionsAreFew) {
  EXPECT_THAT(peers_to_warm(team(0, 16, 8), 16), SizeIs(15)) << "128 connections";
  EXPECT_THAT(peers_to_warm(team(0, 18, 8), 16), ElementsAre(Pe(8), Pe(16)));
  EXPECT_THAT(peers_to_warm(team(0, 8192, 8), 16), SizeIs(19));
  EXPECT_THAT(peers_to_warm(team(0, 1, 1), 16), SizeIs(0));
}

}  // namespace
}  // namespace weft::runtime
