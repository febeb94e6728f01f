// The arithmetic of routing, over whole small domains: which rank owns an expert, which slot a
// token has, where a row ends; against counting by hand.
#include <weft/moe/plan.hpp>
#include <weft/moe/row.hpp>

#include <gtest/gtest.h>

#include <array>
#include <random>
#include <set>
#include <vector>

namespace weft::moe {
namespace {

TEST(MoeExperts, EveryExpertHasOneOwnerAndOwnersDifferByAtMostOne) {
  for (std::int32_t ranks = 1; ranks <= 12; ++ranks) {
    for (std::int32_t experts = 1; experts <= 60; ++experts) {
      const ExpertMap map{experts, ranks};
      std::int32_t next = 0;
      for (std::int32_t rank = 0; rank < ranks; ++rank) {
        EXPECT_EQ(map.first_of(rank), next);
        EXPECT_EQ(map.count_of(rank), experts / ranks + (rank < experts % ranks ? 1 : 0));
        for (std::int32_t local = 0; local < map.count_of(rank); ++local, ++next) {
          EXPECT_EQ(map.rank_of(next), rank);
          EXPECT_EQ(map.local_of(next), local);
          for (std::int32_t other = 0; other < ranks; ++other) {
            EXPECT_EQ(map.owns(other, next), other == rank);
          }
        }
      }
      EXPECT_EQ(next, experts);
      EXPECT_FALSE(map.owns(0, -1));
    }
  }
}

TEST(MoePlan, AnIdIsThatOfAnExpertOrMinusOne) {
  for (const std::int32_t experts : {1, 2, 5, 4096}) {
    for (std::int64_t id = -3; id < experts + 3; ++id) {
      EXPECT_EQ(is_allowed(id, experts), id >= -1 && id < experts) << id << " of " << experts;
    }
    for (const std::int64_t far :
         {INT64_MIN, INT64_MIN + 1, INT64_MAX, INT64_MAX - 1, std::int64_t{INT32_MIN},
          std::int64_t{1} << 32U, (std::int64_t{1} << 32U) - 1, -(std::int64_t{1} << 32U)}) {
      EXPECT_FALSE(is_allowed(far, experts)) << far << " of " << experts;
    }
  }
}

TEST(MoePlan, MasksNameTheOwnersOfAllLanes) {
  const ExpertMap map{5, 3};
  std::array<std::int32_t, 3> ids{};
  for (int code = 0; code < 6 * 6 * 6; ++code) {  // every id from -1 to 4 in every lane
    ids = {code % 6 - 1, code / 6 % 6 - 1, code / 36 - 1};
    std::set<std::int32_t> ranks;
    std::array<std::set<std::int32_t>, 3> experts;
    for (const std::int32_t id : ids) {
      if (id >= 0) {
        ranks.insert(map.rank_of(id));
        experts.at(static_cast<std::size_t>(map.rank_of(id))).insert(id);
      }
    }
    const Route route{ids.data(), 3};
    for (std::int32_t rank = 0; rank < 3; ++rank) {
      EXPECT_EQ(goes_to(route, map, rank), ranks.contains(rank));
      EXPECT_EQ(expert_rows_at(route, map, rank),
                static_cast<std::int32_t>(experts.at(static_cast<std::size_t>(rank)).size()));
      for (std::int32_t window = 0; window <= rank; ++window) {
        EXPECT_EQ(rank_mask(route, map, window) >> (rank - window) & 1, ranks.contains(rank));
      }
    }
    for (std::int32_t lane = 0; lane < 3; ++lane) {
      EXPECT_EQ(route.is_first(lane), route.first_lane(lane) == lane);
    }
  }
}

TEST(MoePlan, MasksOfManyRanksAreSeenThroughWindowsOf64) {
  const ExpertMap map{300, 150};
  const std::array<std::int32_t, 4> ids{0, 130, 299, -1};
  const Route route{ids.data(), 4};
  EXPECT_EQ(rank_mask(route, map, 0), 1U);
  EXPECT_EQ(rank_mask(route, map, 64), std::uint64_t{1} << (65 - 64));
  EXPECT_EQ(rank_mask(route, map, 128), std::uint64_t{1} << (149 - 128));
}

TEST(MoePlan, SlotsCountTheEarlierTokens) {
  std::mt19937_64 random(3);
  for (const std::int32_t tokens : {1, 63, 64, 65, 200}) {
    for (int trial = 0; trial < 20; ++trial) {
      std::vector<std::uint64_t> words(static_cast<std::size_t>(tokens + 63) / 64);
      for (std::uint64_t& word : words) {
        word = trial == 0 ? ~std::uint64_t{0} : random();
      }
      std::int32_t earlier = 0;
      for (std::int32_t token = 0; token < tokens; ++token) {
        EXPECT_EQ(slot_of(words.data(), token), earlier);
        earlier += has_token(words.data(), token) ? 1 : 0;
      }
    }
  }
}

TEST(MoePlan, RowsOfAnExpertFollowTheSources) {
  // counts[source][expert]
  const std::vector<std::int32_t> counts{2, 0, 1, 3, 4, 0, 0, 1, 5};
  EXPECT_EQ(first_position(counts.data(), 3, 0, 0), 0);
  EXPECT_EQ(first_position(counts.data(), 3, 1, 0), 2);
  EXPECT_EQ(first_position(counts.data(), 3, 2, 0), 5);
  EXPECT_EQ(first_position(counts.data(), 3, 2, 1), 4);
  EXPECT_EQ(first_position(counts.data(), 3, 2, 2), 1);
  EXPECT_EQ(padded_row(2, 384, 7), 2 * 384 + 7);
  const std::vector<std::int32_t> totals{5, 0, 6};
  EXPECT_EQ(compact_offset(totals.data(), 0, 4), 0);
  EXPECT_EQ(compact_offset(totals.data(), 1, 4), 8);
  EXPECT_EQ(compact_offset(totals.data(), 2, 4), 8);
  EXPECT_EQ(compact_offset(totals.data(), 3, 4), 16);
  EXPECT_EQ(compact_offset(totals.data(), 3, 1), 11);
}

TEST(MoeRow, PartsDoNotOverlapAndAreAligned) {
  for (std::size_t payload = 16; payload <= 512; payload += 16) {
    for (const std::size_t scales : {0U, 1U, 4U, 36U, 224U}) {
      for (std::size_t topk = 1; topk <= 16; ++topk) {
        const RowLayout row{payload, scales, topk};
        EXPECT_GE(row.scales_at(), payload);
        EXPECT_GE(row.ids_at(), payload + scales);
        EXPECT_EQ(row.ids_at() % 4, 0U);
        EXPECT_EQ(row.weights_at(), row.ids_at() + topk * 4);
        EXPECT_EQ(row.token_at(), row.weights_at() + topk * 4);
        EXPECT_GE(row.bytes(), row.token_at() + 4);
        EXPECT_EQ(row.bytes() % kRowAlignment, 0U);
      }
    }
  }
  EXPECT_EQ((RowLayout{7168, 224, 8}.bytes()), 7488U);
}

}  // namespace
}  // namespace weft::moe
