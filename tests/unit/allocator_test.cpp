// The allocator against a model: every sequence of a few calls, and long random ones.
#include "src/heap/allocator.hpp"

#include <gtest/gtest.h>

#include <map>
#include <random>
#include <vector>

namespace weft::heap {
namespace {

// No overlap, all inside, aligned; what is free and what is not add up.
void expect_consistent(const Allocator& allocator,
                       const std::map<std::uint64_t, std::uint64_t>& blocks,
                       std::uint64_t size) {
  std::uint64_t end = 0;
  std::uint64_t used = 0;
  for (const auto& [offset, bytes] : blocks) {
    ASSERT_GE(offset, end);
    ASSERT_LE(offset + bytes, size);
    ASSERT_EQ(allocator.block_size(offset), bytes);
    ASSERT_EQ(allocator.block_around(offset + bytes - 1), std::pair(offset, bytes));
    end = offset + bytes;
    used += bytes;
  }
  ASSERT_EQ(allocator.free_bytes(), size - used);
  ASSERT_LE(allocator.largest_free_block(), allocator.free_bytes());
}

TEST(Allocator, EverySequenceOfSixCallsKeepsBlocksApart) {
  constexpr std::uint64_t kSize = 16;
  constexpr std::uint32_t kChoices =
      6;  // allocate 1, 3, 8 (align 1, 2, 8); release first, mid, last
  for (std::uint32_t code = 0; code < 6 * 6 * 6 * 6 * 6 * 6; ++code) {
    Allocator allocator(kSize);
    std::map<std::uint64_t, std::uint64_t> blocks;
    for (std::uint32_t step = 0, rest = code; step < 6; ++step, rest /= kChoices) {
      const std::uint32_t choice = rest % kChoices;
      if (choice < 3) {
        const std::uint64_t bytes = std::vector<std::uint64_t>{1, 3, 8}[choice];
        const std::uint64_t alignment = std::vector<std::uint64_t>{1, 2, 8}[choice];
        if (const auto offset = allocator.allocate(bytes, alignment)) {
          ASSERT_EQ(*offset % alignment, 0U);
          ASSERT_TRUE(blocks.emplace(*offset, bytes).second);
        }
      } else if (!blocks.empty()) {
        auto block = std::next(blocks.begin(),
                               static_cast<std::ptrdiff_t>((choice - 3) * (blocks.size() - 1) / 2));
        ASSERT_TRUE(allocator.release(block->first));
        blocks.erase(block);
      }
      expect_consistent(allocator, blocks, kSize);
    }
    for (const auto& [offset, bytes] : blocks) {
      ASSERT_TRUE(allocator.release(offset));
    }
    ASSERT_EQ(allocator.largest_free_block(), kSize);
  }
}

TEST(Allocator, LongRandomUseLosesNothing) {
  constexpr std::uint64_t kSize = 1U << 20U;
  std::mt19937_64 random(20261121);
  Allocator allocator(kSize);
  std::map<std::uint64_t, std::uint64_t> blocks;
  for (int step = 0; step < 20'000; ++step) {
    if (random() % 2 == 0 || blocks.empty()) {
      const std::uint64_t bytes = 1 + random() % 5000;
      const std::uint64_t alignment = std::uint64_t{1} << random() % 13;
      if (const auto offset = allocator.allocate(bytes, alignment)) {
        ASSERT_EQ(*offset % alignment, 0U);
        blocks.emplace(*offset, bytes);
      }
    } else {
      const auto block =
          std::next(blocks.begin(), static_cast<std::ptrdiff_t>(random() % blocks.size()));
      ASSERT_TRUE(allocator.release(block->first));
      blocks.erase(block);
    }
    if (step % 500 == 0) {
      expect_consistent(allocator, blocks, kSize);
    }
  }
}

TEST(Allocator, EveryAlignmentUpToTheFreeSizeIsToBeHadBehindAnyFirstBlock) {
  for (std::uint64_t first = 1; first <= 64; ++first) {
    for (std::uint64_t alignment = 1; alignment <= 64; alignment *= 2) {
      Allocator allocator(first + 64);
      EXPECT_EQ(allocator.allocate(first, 1), 0U);
      const auto offset = allocator.allocate(1, alignment);
      ASSERT_TRUE(offset.has_value()) << first << " bytes before, alignment " << alignment;
      EXPECT_EQ(*offset % alignment, 0U);
      EXPECT_GE(*offset, first);
    }
  }
}

TEST(Allocator, RefusesWhatIsNotTheStartOfABlock) {
  Allocator allocator(100);
  ASSERT_EQ(allocator.allocate(10, 1), 0U);
  EXPECT_FALSE(allocator.release(1));
  EXPECT_FALSE(allocator.release(10));
  EXPECT_EQ(allocator.block_around(10), std::nullopt);
  EXPECT_TRUE(allocator.release(0));
  EXPECT_FALSE(allocator.release(0));
}

TEST(Allocator, SizesNearTheLargestNumberDoNotWrap) {
  Allocator allocator(1000);
  ASSERT_TRUE(allocator.allocate(1, 1));
  EXPECT_EQ(allocator.allocate(UINT64_MAX, 1), std::nullopt);
  EXPECT_EQ(allocator.allocate(UINT64_MAX - 1, 64), std::nullopt);
  EXPECT_EQ(allocator.allocate(1, std::uint64_t{1} << 63U), std::nullopt);
}

}  // namespace
}  // namespace weft::heap
