// Which PEs share a node: identities from /proc, and their grouping.
#include <gtest/gtest.h>

#include <gmock/gmock.h>

#include "src/topology/node.hpp"

namespace weft::topology {
namespace {

using testing::ElementsAre;
using Identities = std::vector<std::string>;

TEST(Node, IdentityIsStableInOneProcessAndNamesBootAndNamespaces) {
  const NodeIdentity identity = node_identity();
  EXPECT_EQ(identity.id, node_identity().id);
  EXPECT_THAT(identity.id, testing::HasSubstr("/net:"));
  EXPECT_THAT(identity.id, testing::HasSubstr("/pid:"));
  EXPECT_FALSE(identity.hostname.empty());
}

TEST(Node, IdentityWithoutProcFallsBackToTheHostname) {
  const NodeIdentity identity = node_identity("/nowhere");
  EXPECT_EQ(identity.id, identity.hostname + "/net:none/pid:none/host:" + identity.hostname);
}

TEST(Node, NetworkIsTheIdentityWithoutWhatDiffersInsideOne) {
  EXPECT_EQ(network_of("boot/net:4/pid:5/host:a"), "boot/net:4");
  EXPECT_EQ(network_of("boot/net:4/pid:6/host:b"), network_of("boot/net:4/pid:5/host:a"));
  EXPECT_NE(network_of("boot/net:7/pid:5/host:a"), network_of("boot/net:4/pid:5/host:a"));
}

TEST(Node, PesOfOneIdentityAreOneNode) {
  EXPECT_THAT(
      group_nodes(Identities{"a", "a", "b", "b"}, 0),
      ElementsAre(NodePlace{0, 0, 2}, NodePlace{0, 1, 2}, NodePlace{1, 0, 2}, NodePlace{1, 1, 2}));
}

TEST(Node, PesDealtRoundRobinOverNodesAreGroupedAllTheSame) {
  EXPECT_THAT(group_nodes(Identities{"b", "a", "b"}, 0),
              ElementsAre(NodePlace{0, 0, 2}, NodePlace{1, 0, 1}, NodePlace{0, 1, 2}));
}

TEST(Node, NodeSizeCutsARealNodeIntoBlocksOfThatManyPes) {
  EXPECT_THAT(group_nodes(Identities{"a", "a", "a", "a", "a"}, 2),
              ElementsAre(NodePlace{0, 0, 2}, NodePlace{0, 1, 2}, NodePlace{1, 0, 2},
                          NodePlace{1, 1, 2}, NodePlace{2, 0, 1}));
}

TEST(Node, NodeSizeNeverJoinsPesOfDifferentRealNodes) {
  EXPECT_THAT(
      group_nodes(Identities{"a", "b", "a", "b"}, 4),
      ElementsAre(NodePlace{0, 0, 2}, NodePlace{1, 0, 2}, NodePlace{0, 1, 2}, NodePlace{1, 1, 2}));
}

TEST(Node, GroupingFitsTogetherForAllSmallJobs) {
  for (std::uint32_t pes = 0; pes <= 12; ++pes) {
    for (std::uint32_t hosts = 1; hosts <= 4; ++hosts) {
      for (std::uint32_t node_size = 0; node_size <= 5; ++node_size) {
        Identities identities;
        for (std::uint32_t pe = 0; pe < pes; ++pe) {
          identities.push_back(std::to_string(pe % hosts));
        }
        const auto places = group_nodes(identities, node_size);
        ASSERT_EQ(places.size(), pes);
        for (std::uint32_t pe = 0; pe < pes; ++pe) {
          ASSERT_LT(places[pe].local_index, places[pe].local_count);
          ASSERT_TRUE(node_size == 0 || places[pe].local_count <= node_size);
          for (std::uint32_t other = 0; other < pes; ++other) {
            if (places[pe].node_index == places[other].node_index) {
              ASSERT_EQ(identities[pe], identities[other]);
              ASSERT_EQ(places[pe].local_count, places[other].local_count);
              ASSERT_EQ(pe == other, places[pe].local_index == places[other].local_index);
            }
          }
        }
      }
    }
  }
}

}  // namespace
}  // namespace weft::topology
