// Turns at a place that is full, and the list of peers with something to do.
#include <gtest/gtest.h>

#include <array>
#include <vector>

#include "src/proxy/active_peers.hpp"
#include "src/proxy/turns.hpp"

namespace weft::proxy {
namespace {

// Competitors that always have more, at a place where `room` items come free in each round. Those
// of `late` ask before those that wait are served, as the first rings of a GPU do.
std::vector<std::uint64_t> flood(std::uint32_t count, std::uint32_t room, std::uint64_t rounds) {
  Turns turns(count);
  std::vector<std::uint64_t> served(count, 0);
  for (std::uint64_t round = 0; round < rounds; ++round) {
    std::uint32_t left = room;
    const auto add = [&](std::uint32_t who) {
      bool moved = false;
      while (turns.enter(who, left > 0)) {
        --left;
        ++served[who];
        moved = true;
      }
      return moved;
    };
    turns.serve([&] { return left > 0; }, add);
    for (std::uint32_t who = 0; who < count; ++who) {
      add(who);
    }
  }
  return served;
}

TEST(Turns, ThoseWhoAlwaysHaveMoreGetEqualShares) {
  constexpr std::uint64_t kRounds = 10'000;
  for (const std::uint32_t count : {2U, 3U, 16U}) {
    for (const std::uint32_t room : {1U, 15U, 16U, 17U, 63U, 300U}) {
      const std::vector<std::uint64_t> served = flood(count, room, kRounds);
      std::uint64_t sum = 0;
      for (std::uint32_t who = 0; who < count; ++who) {
        sum += served[who];
        EXPECT_GE(served[who] * count * 10, kRounds * room * 9)
            << who << " of " << count << ", room " << room;
      }
      EXPECT_EQ(sum, kRounds * room) << "room is left unused";
    }
  }
}

TEST(Turns, NobodyWaitsWhereThereIsRoom) {
  Turns turns(2);
  for (int i = 0; i < 1000; ++i) {
    EXPECT_TRUE(turns.enter(static_cast<std::uint32_t>(i % 2), true));
  }
  EXPECT_TRUE(turns.empty());
}

TEST(Turns, WhoWaitsIsInLineOnceAndLeavesItWhenItHasNothingMore) {
  Turns turns(2);
  EXPECT_FALSE(turns.enter(1, false));
  EXPECT_FALSE(turns.enter(1, false));
  EXPECT_FALSE(turns.enter(0, true)) << "the other was first";
  std::vector<std::uint32_t> order;
  turns.serve([] { return true; },
              [&](std::uint32_t who) {
                order.push_back(who);
                return false;
              });
  EXPECT_EQ(order, (std::vector<std::uint32_t>{1, 0}));
  EXPECT_TRUE(turns.empty());
}

TEST(ActivePeers, AVisitBeginsWithAnotherPeerEachTime) {
  ActivePeers peers(8);
  for (const std::uint32_t pe : {3U, 5U, 3U, 7U}) {
    peers.add(Pe(pe));
  }
  EXPECT_EQ(peers.size(), 3U);
  std::array<int, 8> was_first{};
  for (int i = 0; i < 30; ++i) {
    bool is_first = true;
    peers.visit([&](Pe peer) {
      was_first[peer.value] += is_first ? 1 : 0;
      is_first = false;
      return true;
    });
  }
  EXPECT_EQ(was_first, (std::array<int, 8>{0, 0, 0, 10, 0, 10, 0, 10}));
}

TEST(ActivePeers, PeersLeaveWhenTheyAreDoneAndMayComeDuringAVisit) {
  ActivePeers peers(8);
  peers.add(Pe(1));
  peers.add(Pe(2));
  std::vector<std::uint32_t> seen;
  peers.visit([&](Pe peer) {
    seen.push_back(peer.value);
    if (peer == Pe(2)) {
      peers.add(Pe(6));
    }
    return peer == Pe(1);
  });
  EXPECT_EQ(seen, (std::vector<std::uint32_t>{2, 1, 6}));
  EXPECT_EQ(peers.size(), 1U);
  EXPECT_TRUE(peers.has(Pe(1)));
  EXPECT_FALSE(peers.has(Pe(6)));
  peers.visit([&](Pe) { return false; });
  EXPECT_EQ(peers.size(), 0U);
}

}  // namespace
}  // namespace weft::proxy
