// The parts of the cma transport: the score, the ring and the status slots, with host threads as
// PEs; batches, transfers and chunks.
#include <gtest/gtest.h>

#include <thread>
#include <vector>

#include "src/transport/cma/batch.hpp"
#include "src/transport/cma/fan_out.hpp"
#include "src/transport/cma/mpsc_ring.hpp"
#include "src/transport/cma/regions.hpp"
#include "src/transport/cma/status_slots.hpp"
#include "src/transport/cma/transfers.hpp"

namespace weft::transport::cma {
namespace {

TEST(FanOut, RisesOnChangeFallsOnRepeatAndStaysInItsBoundsFromEveryState) {
  for (std::uint32_t score = 0; score <= FanOut::kScoreMax; ++score) {
    for (std::uint32_t last = 0; last < 4; ++last) {
      for (std::uint32_t next = 0; next < 4; ++next) {
        const FanOut after = FanOut{.last = Pe(last), .score = score}.after(Pe(next));
        const std::uint32_t expected = next != last ? std::min(score + 1, FanOut::kScoreMax)
                                       : score == 0 ? 0
                                                    : score - 1;
        EXPECT_EQ(after.score, expected);
        EXPECT_EQ(after.last, Pe(next));
        EXPECT_EQ(after.is_wide(), expected >= FanOut::kScoreWide);
        EXPECT_EQ(FanOut::decode(after.encode()).score, after.score);
        EXPECT_EQ(FanOut::decode(after.encode()).last, after.last);
      }
    }
  }
}

TEST(MpscRing, RefusesWhenFullAndGoesOnAfterADeadOwner) {
  MpscRing<std::uint64_t, 4> memory{};
  MpscConsumer<std::uint64_t, 4> consumer(memory);
  const CommitWord claim{.lap = 0, .owner = 7, .use = SlotUse::Claimed};
  memory.slots[0].commit = claim.encode();  // its owner died before it moved the tail
  for (std::uint64_t i = 1; i < 4; ++i) {
    ASSERT_TRUE(push(memory, 1, i));
  }
  EXPECT_FALSE(push(memory, 1, std::uint64_t{9}));
  std::uint64_t value = 0;
  EXPECT_FALSE(consumer.pop(value));
  EXPECT_EQ(consumer.blocked_by(), 7U);
  consumer.skip();
  for (std::uint64_t i = 1; i < 4; ++i) {
    ASSERT_TRUE(consumer.pop(value));
    EXPECT_EQ(value, i);
  }
  EXPECT_TRUE(push(memory, 1, std::uint64_t{9}));
}

TEST(MpscRing, CommandsOfManyThreadsArriveOnceAndAreAnsweredOnce) {
  constexpr std::uint64_t kEach = 20'000;
  constexpr std::uint32_t kProducers = 3;
  MpscRing<std::uint64_t, 8> ring{};
  std::vector<StatusMemory<64>> statuses(kProducers);
  std::vector<std::jthread> threads;
  for (std::uint32_t producer = 0; producer < kProducers; ++producer) {
    threads.emplace_back([&, producer] {
      StatusBoard<64> board(statuses[producer]);
      std::uint64_t answered = 0;
      for (std::uint64_t sent = 0; answered < kEach;) {
        const auto slot = sent < kEach ? board.reserve() : std::nullopt;
        if (slot && push(ring, producer, std::uint64_t{producer} << 32U | *slot)) {
          ++sent;
        } else if (slot) {
          board.release(*slot);
        }
        board.collect([&](std::uint32_t index, const Answer& given) {
          EXPECT_EQ(given.result, index + 1);
          ++answered;
        });
        std::this_thread::yield();
      }
    });
  }
  MpscConsumer<std::uint64_t, 8> consumer(ring);
  for (std::uint64_t taken = 0; taken < kProducers * kEach;) {
    std::uint64_t value = 0;
    if (consumer.pop(value)) {
      const auto slot = static_cast<std::uint32_t>(value);
      answer(statuses[value >> 32U], slot, {.state = SlotState::Done, .result = slot + 1});
      ++taken;
    } else {
      std::this_thread::yield();
    }
  }
}

TEST(CopyBatch, KeepsItsOrderWhateverIsDroppedAndItsLimitsOfCountAndBytes) {
  for (std::uint64_t dropped = 0; dropped <= CopyBatch::kItemsMax; ++dropped) {
    CopyBatch batch;
    for (std::uint64_t i = 0; i < CopyBatch::kItemsMax; ++i) {
      ASSERT_TRUE(batch.has_room(8));
      batch.add({.remote = {.region = {}, .offset = HeapOffset(i)}, .bytes = 8});
    }
    EXPECT_FALSE(batch.has_room(8));
    batch.drop(dropped);
    ASSERT_EQ(batch.items().size(), CopyBatch::kItemsMax - dropped);
    EXPECT_EQ(batch.has_items(), dropped < CopyBatch::kItemsMax);
    for (std::uint64_t i = dropped; i < CopyBatch::kItemsMax; ++i) {
      EXPECT_EQ(batch.items()[i - dropped].remote.offset, HeapOffset(i));
    }
    // The bytes of what was dropped are free again, and no more.
    const std::size_t free_bytes = CopyBatch::kBytesMax - 8 * (CopyBatch::kItemsMax - dropped);
    EXPECT_EQ(batch.has_room(free_bytes), dropped > 0);
    EXPECT_FALSE(batch.has_room(free_bytes + 1));
  }
}

TEST(TransferTable, KeepsRoomForWhatComesBackWhenNewOnesAreRefused) {
  TransferTable table;
  std::vector<bool> is_taken(TransferTable::kTransfersMax);
  for (std::uint32_t i = 0; i < TransferTable::kNewMax; ++i) {
    ASSERT_TRUE(table.reserve(TransferTable::kNewMax).has_value());
  }
  EXPECT_FALSE(table.reserve(TransferTable::kNewMax).has_value());
  for (std::uint32_t i = 0; i < kStatusSlots; ++i) {
    const auto index = table.reserve(TransferTable::kTransfersMax);
    ASSERT_TRUE(index && !is_taken[*index]);
    is_taken[*index] = true;
  }
  EXPECT_FALSE(table.reserve(TransferTable::kTransfersMax).has_value());
  table[7].sent_bytes = 9;
  table.release(7);
  EXPECT_FALSE(table.reserve(TransferTable::kNewMax).has_value());
  EXPECT_EQ(table.reserve(TransferTable::kTransfersMax), 7U);
  EXPECT_EQ(table[7].sent_bytes, 0U);
}

TEST(ChunkPool, GivesEachChunkOnceUntilItComesBack) {
  ChunkPool pool;
  std::vector<bool> is_taken(kChunkCount);
  for (std::uint32_t i = 0; i < kChunkCount; ++i) {
    const auto chunk = pool.reserve();
    ASSERT_TRUE(chunk && !is_taken[*chunk]);
    is_taken[*chunk] = true;
  }
  EXPECT_FALSE(pool.reserve().has_value());
  pool.release(63);
  EXPECT_EQ(pool.reserve(), 63);
}

TEST(RegionTable, FindsNothingOutsideARegion) {
  RegionTable table;
  ASSERT_TRUE(table.set(RegionIndex(1), {.base = 4096, .bytes = 64}));
  const auto at = [&](std::uint32_t region, std::uint64_t offset, std::uint64_t bytes) {
    return table.address_of({.region = RegionIndex(region), .offset = HeapOffset(offset)}, bytes);
  };
  EXPECT_EQ(at(1, 60, 4), 4156U);
  EXPECT_EQ(at(1, 60, 5), 0U);
  EXPECT_EQ(at(1, 8, ~std::uint64_t{0}), 0U);
  EXPECT_EQ(at(0, 0, 1), 0U);
  EXPECT_EQ(at(100'000, 0, 1), 0U);
  table.clear(RegionIndex(1));
  EXPECT_EQ(at(1, 0, 1), 0U);
  EXPECT_EQ(at(1, 0, 0), 0U);
}

}  // namespace
}  // namespace weft::transport::cma
