// What each layout is, how many rows it has at most, and that a value which is none of them is
// refused.
#include <weft/moe/layouts.hpp>

#include <gtest/gtest.h>

#include <string>
#include <vector>

#include "moe/src/plan/validate.hpp"

namespace weft::moe {
namespace {

weft_moe_config config_of(weft_moe_layout layout) {
  weft_moe_config config{};
  config.max_tokens = 10;
  config.hidden = 64;
  config.experts = 8;
  config.topk = 3;
  config.payload = WEFT_MOE_BF16;
  config.output = WEFT_MOE_BF16;
  config.layout = layout;
  config.alignment = 4;
  return config;
}

TEST(MoeLayouts, AValueThatIsNoneIsRefusedWithTheNamesOfAll) {
  for (const int value : {0, 5}) {
    const weft_moe_config config = config_of(static_cast<weft_moe_layout>(value));
    EXPECT_EQ(engine::fields_error(config, 2),
              "layout is " + std::to_string(value) +
                  "; give one of rank_major (1), rank_compact (2), expert_padded (3), "
                  "expert_compact (4)");
  }
}

TEST(MoeLayouts, EachIsAcceptedAndItsNameSaysOfWhatItsRowsAre) {
  std::vector<int> seen;
  for_layouts([&](int value, const Layout& layout) {
    seen.push_back(value);
    EXPECT_EQ(engine::fields_error(config_of(static_cast<weft_moe_layout>(value)), 2), "");
    EXPECT_EQ(std::string(layout.name).starts_with("rank_"), layout.is_by_rank) << layout.name;
  });
  EXPECT_EQ(seen, (std::vector<int>{WEFT_MOE_RANK_MAJOR, WEFT_MOE_RANK_COMPACT,
                                    WEFT_MOE_EXPERT_PADDED, WEFT_MOE_EXPERT_COMPACT}));
}

TEST(MoeLayouts, TheMostRowsAreThoseOfItsShape) {
  constexpr std::size_t kArrivals = 2 * 10;  // of 2 ranks
  EXPECT_EQ(most_rows(config_of(WEFT_MOE_RANK_MAJOR), 2, 4), kArrivals);
  EXPECT_EQ(most_rows(config_of(WEFT_MOE_RANK_COMPACT), 2, 4), kArrivals);
  EXPECT_EQ(most_rows(config_of(WEFT_MOE_EXPERT_PADDED), 2, 4), 4 * kArrivals);
  // A token has at most topk rows, and before each expert there may be a gap.
  EXPECT_EQ(most_rows(config_of(WEFT_MOE_EXPERT_COMPACT), 2, 4), 3 * kArrivals + 4 * (4 - 1));
  EXPECT_EQ(most_rows(config_of(WEFT_MOE_EXPERT_COMPACT), 2, 1), kArrivals + (4 - 1));
}

}  // namespace
}  // namespace weft::moe
