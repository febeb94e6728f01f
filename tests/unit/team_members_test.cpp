// The members of a team as one of them sees them: nodes, mates and slices, for every PE of small
// jobs.
#include "src/collectives/team_members.hpp"

#include <gtest/gtest.h>

#include <numeric>
#include <vector>

#include <gmock/gmock.h>

namespace weft::collectives {
namespace {

using ::testing::ElementsAre;

TEST(TeamMembers, OfABlockAndOfARoundRobinJobAreGroupedByNode) {
  const std::vector<Pe> pes{Pe(0), Pe(1), Pe(2), Pe(3), Pe(4)};
  const TeamMembers block(Pe(3), pes, std::vector<std::uint32_t>{7, 7, 7, 2, 2});
  EXPECT_THAT(block.nodes(), ElementsAre(Mates{0, 1, 2}, Mates{3, 4}));
  EXPECT_THAT(block.leaders(), ElementsAre(Pe(0), Pe(3)));
  EXPECT_THAT(block.others(), ElementsAre(Pe(2), Pe(1), Pe(0), Pe(4)));
  const TeamMembers turns(Pe(3), pes, std::vector<std::uint32_t>{0, 1, 0, 1, 0});
  EXPECT_THAT(turns.mates(), ElementsAre(1, 3));
  EXPECT_EQ(turns.mate_index(), 1U);
  EXPECT_EQ(turns.slice_count(), 2U);
}

TEST(TeamMembers, AgreeOnEveryPeAboutNodesAndLanes) {
  for (std::uint32_t count = 1; count <= 6; ++count) {
    std::vector<Pe> pes;
    for (std::uint32_t i = 0; i < count; ++i) {
      pes.emplace_back(count - 1 - i);  // an order of its own
    }
    for (std::uint32_t nodes = 1; nodes <= count; ++nodes) {
      std::vector<std::uint32_t> node_of(count);
      std::iota(node_of.begin(), node_of.end(), 0U);
      for (std::uint32_t& node : node_of) {
        node %= nodes;
      }
      const TeamMembers first(pes.front(), pes, node_of);
      for (std::uint32_t i = 0; i < count; ++i) {
        const TeamMembers mine(pes[i], pes, node_of);
        EXPECT_EQ(mine.index(), i);
        EXPECT_EQ(mine.index_of(pes[i]), i);
        EXPECT_EQ(mine.nodes(), first.nodes());
        EXPECT_EQ(mine.slice_count(), first.slice_count());
        EXPECT_EQ(mine.mates()[mine.mate_index()], i);
        EXPECT_EQ(mine.is_on_one_node(), nodes == 1);
      }
      EXPECT_EQ(first.index_of(Pe(count)), count) << "no member";
    }
  }
}

}  // namespace
}  // namespace weft::collectives
