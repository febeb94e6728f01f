// Where everything lies in the staging region: nothing overlaps, everything is inside, sizes
// shrink.
#include <gtest/gtest.h>

#include <algorithm>
#include <utility>
#include <vector>

#include "src/base/error.hpp"
#include "src/proxy/staging.hpp"

namespace weft::proxy {
namespace {

using Piece = std::pair<std::size_t, std::size_t>;  // begin, end

std::vector<Piece> pieces_of(const StagingLayout& layout, std::uint32_t pe_count) {
  std::vector<Piece> pieces;
  for (std::uint32_t pe = 0; pe < pe_count; ++pe) {
    pieces.emplace_back(layout.credit(Pe(pe)), layout.credit(Pe(pe)) + 8);
    for (std::uint32_t slot = 0; slot < layout.direct_window(); ++slot) {
      const std::size_t word = layout.direct_arrival(Pe(pe), slot);
      pieces.emplace_back(word, word + 8);
    }
    for (std::uint32_t slot = 0; slot < layout.slots(); ++slot) {
      const std::size_t word = layout.arrival(Pe(pe), slot);
      pieces.emplace_back(word, word + 8);
      for (const std::size_t at :
           {layout.receive_slot(Pe(pe), slot), layout.send_slot(Pe(pe), slot)}) {
        EXPECT_EQ(at % 4096, 0U);
        pieces.emplace_back(at, at + layout.slot_bytes());
      }
    }
  }
  return pieces;
}

TEST(StagingLayout, NothingOverlapsAndAllIsInside) {
  for (const std::uint32_t pe_count : {1U, 2U, 3U, 7U, 64U, 511U}) {
    const StagingLayout layout(pe_count, {});
    std::vector<Piece> pieces = pieces_of(layout, pe_count);
    std::ranges::sort(pieces);
    for (std::size_t i = 1; i < pieces.size(); ++i) {
      ASSERT_LE(pieces[i - 1].second, pieces[i].first) << pe_count << " PEs";
    }
    ASSERT_LE(pieces.back().second, layout.region_bytes());
  }
}

TEST(StagingLayout, FewPeersGetWhatWasAskedForAndManyGetLess) {
  const StagingLayout few(16, {});
  EXPECT_EQ(few.slots(), 8U);
  EXPECT_EQ(few.slot_bytes(), std::size_t{128} << 10U);
  std::size_t last = few.slot_bytes() * few.slots();
  for (std::uint32_t pe_count = 16; pe_count <= 4096; pe_count *= 2) {
    const StagingLayout layout(pe_count, {});
    EXPECT_LE(layout.region_bytes(), std::size_t{69} << 20U) << pe_count;
    EXPECT_LE(layout.slot_bytes() * layout.slots(), last) << pe_count;
    last = layout.slot_bytes() * layout.slots();
  }
  EXPECT_EQ(StagingLayout(60'000, {}).slots(), 2U);
}

TEST(StagingLayout, TheWindowOfDirectPutsShrinksWithTheNumberOfPes) {
  EXPECT_EQ(StagingLayout(2, {}).direct_window(), kGpuDirectWindow);
  EXPECT_EQ(StagingLayout(2048, {}).direct_window(), 256U);
  EXPECT_EQ(StagingLayout(4096, {}).direct_window(), 128U);
  EXPECT_EQ(StagingLayout(60'000, {}).direct_window(), 128U);
}

TEST(StagingLayout, SlotsTooSmallForARecordAreRefused) {
  EXPECT_THROW(StagingLayout(2, {.slots_per_peer = 1}), Error);
  EXPECT_THROW(StagingLayout(2, {.slots_per_peer = 4, .slot_bytes = 1000}), Error);
}

}  // namespace
}  // namespace weft::proxy
