// What rails keep of each peer takes memory only for what is in flight.
#include <gtest/gtest.h>

#include <algorithm>
#include <cstdint>
#include <deque>
#include <random>

#include "src/transport/rails/compact_queue.hpp"
#include "src/transport/rails/sequence_window.hpp"
#include "src/transport/rails/tally_window.hpp"

namespace weft::transport::rails {
namespace {

TEST(CompactQueue, HoldsWhatADequeHolds) {
  std::mt19937 random(1);
  CompactQueue<std::uint32_t> queue;
  std::deque<std::uint32_t> expected;
  for (std::uint32_t i = 0; i < 200'000; ++i) {
    // Grows for a while, then shrinks, and so on.
    const bool grows = (i / 500) % 2 == 0;
    const bool adds = random() % 4 < (grows ? 3U : 1U);
    if (adds && random() % 3 == 0) {
      queue.push_front(i);
      expected.push_front(i);
    } else if (adds) {
      queue.push_back(i);
      expected.push_back(i);
    } else if (!expected.empty()) {
      ASSERT_EQ(queue.front(), expected.front());
      queue.pop_front();
      expected.pop_front();
    }
    ASSERT_EQ(queue.size(), expected.size());
    if (i % 97 == 0) {
      ASSERT_TRUE(std::ranges::equal(queue, expected));
    }
  }
}

TEST(CompactQueue, GivesALargeBlockBackWhenItIsEmpty) {
  CompactQueue<std::uint64_t> queue;
  EXPECT_EQ(queue.capacity(), 0U) << "nothing before the first value";
  for (std::uint64_t i = 0; i < 1000; ++i) {
    queue.push_back(i);
  }
  EXPECT_GE(queue.capacity(), 1000U);
  while (!queue.empty()) {
    queue.pop_front();
  }
  EXPECT_EQ(queue.capacity(), 0U);
  queue.push_back(1);
  queue.pop_front();
  EXPECT_EQ(queue.capacity(), 4U) << "a small one is kept for the next value";
}

TEST(TallyWindow, HasBlocksOnlyForWhatIsNotDone) {
  Pool<TallyBlock> pool;
  TallyWindow window(pool);
  EXPECT_EQ(window.find(5), nullptr);
  for (std::uint32_t sequence = 0; sequence < 100'000; ++sequence) {
    EXPECT_FALSE(window.at(sequence).pieces.on_piece());
    window.advance(sequence + 1);
    ASSERT_LE(pool.in_use(), 1U);
  }
  static_cast<void>(window.at(100'000 + SequenceWindow::kSpan - 1));
  EXPECT_EQ(pool.in_use(), 2U) << "those between them are not made";
}

TEST(TallyWindow, KeepsEachCountOverTheWholeWindowAndWhereNumbersWrap) {
  Pool<TallyBlock> pool;
  TallyWindow window(pool);
  for (const std::uint32_t floor : {0U, 63U, 64U, 1000U, 0xFFFF'F000U, 0xFFFF'FFC1U, 17U}) {
    window.advance(floor);
    for (std::uint32_t i = 0; i < SequenceWindow::kSpan; ++i) {
      ASSERT_EQ(window.at(floor + i).eager, 0U) << "floor " << floor << ", " << i;
      window.at(floor + i).eager = floor + i + 1;
    }
    for (std::uint32_t i = 0; i < SequenceWindow::kSpan; ++i) {
      ASSERT_EQ(window.find(floor + i)->eager, floor + i + 1);
      *window.find(floor + i) = {};
    }
    window.advance(floor + SequenceWindow::kSpan);
    EXPECT_LE(pool.in_use(), 1U);
  }
}

}  // namespace
}  // namespace weft::transport::rails
