// The planner, exhaustively on small domains and by simulation on large ones. Every policy is a
// pure function, so what the lab measures with packets can be counted here.
#include "src/transport/rails/planner.hpp"

#include <gtest/gtest.h>

#include <algorithm>
#include <cmath>
#include <functional>
#include <map>
#include <numeric>
#include <random>
#include <tuple>
#include <vector>

#include "src/transport/rails/policies.hpp"
#include "tools/balance/max_over_mean.hpp"

namespace weft::transport::rails {
namespace {

constexpr std::uint64_t kWindow = 1U << 20U;

struct Side {
  std::vector<RailState> rails;

  explicit Side(std::size_t count) : rails(count) {
    for (RailState& rail : rails) {
      rail.window_bytes = kWindow;
    }
  }
};

std::vector<LinkMask> all_links(std::size_t local, std::size_t remote) {
  const LinkMask mask = remote == 32 ? ~LinkMask{0} : (LinkMask{1} << remote) - 1;
  return std::vector<LinkMask>(local, mask);
}

// All PEs of 2 nodes send to all PEs of the other node, as the seeds' all-to-all does.
struct AllToAll {
  std::uint32_t pes;
  std::size_t rails;
  const Policy* policy;
  std::vector<std::vector<std::uint64_t>> sent{};

  using Sizes = std::vector<std::uint64_t>;

  // Bytes received, and sent, by each rail: [pe][rail].
  std::vector<std::vector<std::uint64_t>> run(std::size_t steps,
                                              const std::function<Sizes(std::size_t)>& sizes) {
    std::vector<std::vector<std::uint64_t>> received(pes, std::vector<std::uint64_t>(rails));
    sent.assign(pes, std::vector<std::uint64_t>(rails));
    for (std::uint32_t me = 0; me < pes; ++me) {
      Side local(rails);
      std::map<std::uint32_t, Side> remotes;
      const auto links = all_links(rails, rails);
      std::uint64_t counter = 0;
      for (std::size_t step = 0; step < steps; ++step) {
        for (std::uint32_t k = 0; k < pes / 2; ++k) {
          const std::uint32_t peer = (me < pes / 2 ? pes / 2 : 0) + k;
          for (const std::uint64_t bytes : sizes(step)) {
            Side& remote = remotes.try_emplace(peer, rails).first->second;
            const PlanInput input{policy,       Pe(me), Pe(peer), local.rails,
                                  remote.rails, links,  counter++};
            for (const Piece& piece : plan(input, bytes)) {
              local.rails[piece.local.value].sent_bytes += piece.bytes;
              remote.rails[piece.remote.value].sent_bytes += piece.bytes;
              received[peer][piece.remote.value] += piece.bytes;
              sent[me][piece.local.value] += piece.bytes;
            }
          }
        }
      }
    }
    return received;
  }
};

double worst_of(const std::vector<std::vector<std::uint64_t>>& bytes) {
  double worst = 0;
  for (const auto& pe : bytes) {
    worst = std::max(worst, max_over_mean(pe).value());
  }
  return worst;
}

AllToAll::Sizes fixed_sizes(std::size_t /*step*/) {
  return {256U << 10U};
}

// Warm-up, and what the counters call up and warm, go by this.
TEST(Planner, UsesTheRailsTogetherThatItSaysItUses) {
  for (const Policy& policy : policies()) {
    for (std::size_t local = 1; local <= 4; ++local) {
      for (std::size_t remote = 1; remote <= 4; ++remote) {
        for (std::uint32_t down = 0; down < 1U << (local * remote); down += 1 + down / 97) {
          Side mine(local);
          Side theirs(remote);
          auto links = all_links(local, remote);
          for (std::size_t i = 0; i < local; ++i) {
            links[i] &= ~(down >> (i * remote));
          }
          for (std::uint64_t counter = 0; counter < 12; ++counter) {
            const PlanInput input{&policy, Pe(1), Pe(2), mine.rails, theirs.rails, links, counter};
            for (const Piece& piece : plan(input, 100'000)) {
              const RailPair pair{piece.local, piece.remote};
              ASSERT_TRUE(policy.may_use(pair, remote));
              ASSERT_TRUE(down != 0 || policy.is_first_choice(pair, remote));
              mine.rails[piece.local.value].sent_bytes += piece.bytes;
              theirs.rails[piece.remote.value].sent_bytes += piece.bytes;
            }
          }
        }
      }
    }
  }
}

TEST(Planner, CutsEveryOperationIntoPiecesThatCoverItExactlyOnce) {
  for (const Policy& policy : policies()) {
    for (std::size_t local = 1; local <= 5; ++local) {
      for (std::size_t remote = 1; remote <= 5; ++remote) {
        for (const std::uint64_t bytes :
             {0UL, 1UL, 8UL, 65535UL, 65536UL, 65537UL, 100000UL, 1048576UL, 5000000UL}) {
          const Side mine(local);
          const Side theirs(remote);
          const auto links = all_links(local, remote);
          const PlanInput input{&policy, Pe(1), Pe(2), mine.rails, theirs.rails, links, 7};
          std::uint64_t offset = 0;
          for (const Piece& piece : plan(input, bytes)) {
            ASSERT_EQ(piece.offset, offset);
            ASSERT_LT(piece.local.value, local);
            ASSERT_LT(piece.remote.value, remote);
            offset += piece.bytes;
          }
          ASSERT_EQ(offset, bytes) << policy.name << " " << local << "x" << remote;
        }
      }
    }
  }
}

TEST(Planner, NeverUsesALinkThatIsDownForAnyMaskOfThreeByThreeLinks) {
  for (const Policy& policy : policies()) {
    for (std::uint32_t mask = 0; mask < 512; ++mask) {
      const Side mine(3);
      const Side theirs(3);
      const std::vector<LinkMask> links{mask & 7U, (mask >> 3U) & 7U, (mask >> 6U) & 7U};
      for (std::uint64_t counter = 0; counter < 3; ++counter) {
        const PlanInput input{&policy, Pe(0), Pe(1), mine.rails, theirs.rails, links, counter};
        const auto pieces = plan(input, 300'000);
        ASSERT_TRUE(!pieces.empty() || mask == 0 || policy.names_remote)
            << policy.name << " plans nothing over the links " << mask
            << ", although some are up. A policy by_bytes in which our rail names the peer's is "
               "declared with paired() in policies.cpp";
        for (const Piece& piece : pieces) {
          ASSERT_TRUE((links[piece.local.value] >> piece.remote.value) & 1U) << policy.name << mask;
        }
      }
    }
  }
}

TEST(Planner, CoupledPutsAllThatOnePeReceivesOnOneRail) {
  AllToAll traffic{8, 4, find_policy("coupled")};
  EXPECT_DOUBLE_EQ(worst_of(traffic.run(100, fixed_sizes)), 4.0);
}

TEST(Planner, OffsetIsEvenForEqualSizesAndBreaksWithASignalInTurn) {
  AllToAll traffic{8, 4, find_policy("offset")};
  EXPECT_LT(worst_of(traffic.run(100, fixed_sizes)), 1.01);
  const auto alternating = [](std::size_t) { return AllToAll::Sizes{256U << 10U, 8}; };
  static_cast<void>(traffic.run(100, alternating));
  EXPECT_GT(worst_of(traffic.sent), 1.9) << "all data leaves by the even rails";
}

TEST(Planner, BalancedIsEvenAlsoWithASignalInTurn) {
  AllToAll traffic{8, 4, find_policy("balanced")};
  EXPECT_LT(worst_of(traffic.run(100, fixed_sizes)), 1.02);
  const auto alternating = [](std::size_t) { return AllToAll::Sizes{256U << 10U, 8}; };
  EXPECT_LT(worst_of(traffic.run(100, alternating)), 1.02);
  EXPECT_LT(worst_of(traffic.sent), 1.02);
}

TEST(Planner, BalancedIsEvenForSmallOperationsThatAreNotStriped) {
  AllToAll traffic{8, 4, find_policy("balanced")};
  EXPECT_LT(worst_of(traffic.run(100, [](std::size_t) { return AllToAll::Sizes(4, 4096); })), 1.02);
}

TEST(Planner, BalancedIsEvenForParetoSizes) {
  std::mt19937_64 random(7);
  std::uniform_real_distribution<double> uniform(1e-9, 1.0);
  AllToAll traffic{16, 4, find_policy("balanced")};
  const auto received = traffic.run(1000, [&](std::size_t) {
    return AllToAll::Sizes{
        static_cast<std::uint64_t>(4096.0 / std::pow(uniform(random), 1.0 / 1.2))};
  });
  EXPECT_LT(worst_of(received), 1.02);
}

TEST(Planner, BalancedServesUnevenRailCounts) {
  Side mine(4);
  Side theirs(3);
  const auto links = all_links(4, 3);
  for (int i = 0; i < 300; ++i) {
    const PlanInput input{find_policy("balanced"), Pe(0), Pe(1), mine.rails, theirs.rails, links};
    for (const Piece& piece : plan(input, 1U << 20U)) {
      mine.rails[piece.local.value].sent_bytes += piece.bytes;
      theirs.rails[piece.remote.value].sent_bytes += piece.bytes;
    }
  }
  for (const Side* side : {&mine, &theirs}) {
    std::vector<std::uint64_t> sent;
    for (const RailState& rail : side->rails) {
      sent.push_back(rail.sent_bytes);
    }
    EXPECT_LT(max_over_mean(sent).value(), 1.05);
  }
}

TEST(Planner, GivesARailOfAQuarterWeightAQuarterOfTheBytes) {
  Side mine(4);
  Side theirs(4);
  mine.rails[2].weight = 0.25;
  const auto links = all_links(4, 4);
  for (int i = 0; i < 100; ++i) {
    const PlanInput input{find_policy("balanced"), Pe(0), Pe(1), mine.rails, theirs.rails, links};
    for (const Piece& piece : plan(input, 1U << 20U)) {
      mine.rails[piece.local.value].sent_bytes += piece.bytes;
    }
  }
  const double ratio =
      static_cast<double>(mine.rails[2].sent_bytes) / static_cast<double>(mine.rails[0].sent_bytes);
  EXPECT_NEAR(ratio, 0.25, 0.02);
}

TEST(Planner, PassesOverARailWhoseQueueIsFull) {
  Side mine(2);
  Side theirs(2);
  mine.rails[0].outstanding_bytes = kWindow;
  const auto links = all_links(2, 2);
  const PlanInput input{find_policy("balanced"), Pe(0), Pe(1), mine.rails, theirs.rails, links};
  const auto piece = next_piece(input, {.total = 256U << 10U});
  ASSERT_TRUE(piece.has_value());
  EXPECT_EQ(piece->local.value, 1U);
}

TEST(Planner, WaitsWhenAllQueuesAreFullButLetsSmallMessagesThrough) {
  Side mine(2);
  Side theirs(2);
  for (RailState& rail : mine.rails) {
    rail.outstanding_bytes = kWindow;
  }
  const auto links = all_links(2, 2);
  const PlanInput input{find_policy("balanced"), Pe(0), Pe(1), mine.rails, theirs.rails, links};
  EXPECT_FALSE(next_piece(input, {.total = 256U << 10U}).has_value());
  EXPECT_TRUE(next_piece(input, {.total = 64}).has_value());
}

}  // namespace
}  // namespace weft::transport::rails
