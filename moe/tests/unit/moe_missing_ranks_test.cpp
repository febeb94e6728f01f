// What is said of ranks that did not come to a kernel of an exchange.
#include <gtest/gtest.h>

#include "moe/src/gpu/missing_ranks.hpp"

namespace weft::test {
namespace {

using moe::engine::describe_blocks;

TEST(MoeMissingRanks, AKernelWithoutRoomForItsBlocksIsNamedAsTheReason) {
  moe::gpu::Record record{};
  record.missing_blocks = 132;
  record.missing_begun = 0;  // the last block has set it back
  EXPECT_EQ(describe_blocks(record), "");
  record.missing_begun = 40;
  EXPECT_EQ(describe_blocks(record),
            " (only 40 of the 132 blocks of this PE's kernel were running: another kernel, or the "
            "limits of its stream or process, had the other multiprocessors; give the exchange "
            "fewer blocks)");
}

}  // namespace
}  // namespace weft::test
