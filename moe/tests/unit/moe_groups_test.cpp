// Who shares messages, who takes them for its node, and what stands in for it; over all jobs of up
// to three nodes with up to four ranks each.
#include <gtest/gtest.h>

#include <algorithm>
#include <map>
#include <set>
#include <vector>

#include "moe/src/plan/groups.hpp"

namespace weft::moe::engine {
namespace {

// Calls `body` with the node of each rank; the ranks of a node follow each other, or take turns.
template <typename Body>
void for_jobs(Body&& body) {
  for (std::size_t a = 1; a <= 4; ++a) {
    for (std::size_t b = 0; b <= 4; ++b) {
      for (std::size_t c = 0; c <= 4; ++c) {
        std::vector<int> node_of(a, 7);
        node_of.insert(node_of.end(), b, 3);
        node_of.insert(node_of.end(), c, 5);
        body(node_of);
        std::vector<int> mixed;
        for (std::size_t i = 0; i < node_of.size(); ++i) {
          mixed.push_back(node_of[i * 5 % node_of.size()]);
        }
        if (node_of.size() % 5 != 0) {
          body(mixed);
        }
      }
    }
  }
}

TEST(MoeGroups, OtherNodesAreOneGroupEachAndRanksOfThisNodeOneEach) {
  for_jobs([](const std::vector<int>& node_of) {
    for (std::size_t me = 0; me < node_of.size(); ++me) {
      const Groups groups(node_of, me, true);
      std::set<std::size_t> ranks;
      for (std::size_t group = 0; group < groups.count(); ++group) {
        ASSERT_TRUE(std::ranges::is_sorted(groups.ranks(group)));
        for (const std::size_t rank : groups.ranks(group)) {
          ASSERT_TRUE(ranks.insert(rank).second);
          ASSERT_EQ(groups.of(rank), group);
          ASSERT_EQ(node_of[rank], node_of[groups.ranks(group).front()]);
          ASSERT_EQ(groups.is_mate(rank), node_of[rank] == node_of[me]);
        }
        if (node_of[groups.ranks(group).front()] == node_of[me]) {
          ASSERT_EQ(groups.ranks(group).size(), 1U);
        }
      }
      ASSERT_EQ(ranks.size(), node_of.size());
      ASSERT_EQ(std::set(groups.peers().begin(), groups.peers().end()), ranks);
      ASSERT_EQ(groups.peers().size(), node_of.size());
    }
  });
}

TEST(MoeGroups, WithoutNodesEachRankIsAlone) {
  const Groups groups({1, 1, 2, 2}, 1, false);
  EXPECT_EQ(groups.count(), 4U);
  EXPECT_EQ(groups.mates(), std::vector<std::size_t>{1});
  EXPECT_FALSE(groups.is_mate(0));
  EXPECT_FALSE(groups.is_shared(2));
  EXPECT_EQ(groups.peers(), (std::vector<std::size_t>{2, 3, 1, 0}));
}

// By source of other nodes: its relay on the node of `at`.
std::map<std::size_t, std::size_t> relays_on(const std::vector<int>& node_of,
                                             std::size_t at,
                                             std::uint64_t call) {
  const Groups groups(node_of, at, true);
  std::map<std::size_t, std::size_t> relays;
  for (std::size_t source = 0; source < node_of.size(); ++source) {
    if (node_of[source] != node_of[at]) {
      relays[source] = groups.relays(source, groups.mates(), call).front();
    }
  }
  return relays;
}

TEST(MoeGroups, SourceAndTargetKnowTheSameRelayAndThoseThatStandIn) {
  for_jobs([](const std::vector<int>& node_of) {
    for (std::size_t source = 0; source < node_of.size(); ++source) {
      const Groups theirs(node_of, source, true);
      for (std::size_t at = 0; at < node_of.size(); ++at) {
        const Groups ours(node_of, at, true);
        const auto order = ours.relays(source, ours.mates(), 5);
        ASSERT_EQ(std::set(order.begin(), order.end()).size(), ours.mates().size());
        if (node_of[source] != node_of[at]) {
          ASSERT_EQ(theirs.relays(source, theirs.ranks(theirs.of(at)), 5), order);
        }
      }
    }
  });
}

TEST(MoeGroups, RelaysOfANodeDifferByAtMostOneSourceOfEachNodeAndTakeTurns) {
  for_jobs([](const std::vector<int>& node_of) {
    for (std::size_t at = 0; at < node_of.size(); ++at) {
      const auto size = static_cast<std::size_t>(std::ranges::count(node_of, node_of[at]));
      std::map<std::size_t, std::size_t> in_turn;
      for (std::uint64_t call = 0; call < 12; ++call) {  // a multiple of all sizes
        std::map<int, std::map<std::size_t, std::size_t>> loads;
        for (const auto& [source, relay] : relays_on(node_of, at, call)) {
          ++loads[node_of[source]][relay];
          ++in_turn[relay];
        }
        for (const auto& [node, load] : loads) {
          const auto sources = static_cast<std::size_t>(std::ranges::count(node_of, node));
          for (const auto& [relay, count] : load) {
            ASSERT_LE(count, (sources + size - 1) / size);
          }
        }
      }
      for (const auto& [relay, count] : in_turn) {
        ASSERT_EQ(count * size, in_turn.begin()->second * size);
        ASSERT_EQ(in_turn.size(), size);
      }
    }
  });
}

TEST(MoeGroups, SourcesWithTheSameRelayHaveDifferentPlacesWithinTheBound) {
  for_jobs([](const std::vector<int>& node_of) {
    for (std::size_t at = 0; at < node_of.size(); ++at) {
      const Groups groups(node_of, at, true);
      for (std::uint64_t call = 0; call < 5; ++call) {
        std::set<std::pair<std::size_t, std::size_t>> taken;
        for (const auto& [source, relay] : relays_on(node_of, at, call)) {
          const std::size_t place = groups.place_at_relay(source);
          ASSERT_LT(place, groups.sources_max());
          ASSERT_TRUE(taken.insert({relay, place}).second);
        }
      }
    }
  });
}

}  // namespace
}  // namespace weft::moe::engine
