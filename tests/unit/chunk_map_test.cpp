// Look-ups in the chunks of a heap against a model of single bytes, for every layout of a small
// heap.
#include "src/heap/chunk_map.hpp"

#include <gtest/gtest.h>

#include <algorithm>
#include <thread>
#include <vector>

namespace weft::heap {
namespace {

constexpr std::uint64_t kLimit = 7;

// Bit i of `used`: byte i is in a chunk. Bit i of `cuts`: a new chunk starts there, even if byte i
// - 1 is in one.
std::vector<Chunk> layout(std::uint32_t used, std::uint32_t cuts) {
  std::vector<Chunk> chunks;
  for (std::uint64_t i = 0; i < kLimit; ++i) {
    if ((used >> i & 1U) == 0) {
      continue;
    }
    const bool goes_on = !chunks.empty() && chunks.back().offset + chunks.back().bytes == i;
    if (goes_on && (cuts >> i & 1U) == 0) {
      ++chunks.back().bytes;
    } else {
      chunks.push_back(
          {.offset = i, .bytes = 1, .region = RegionIndex(static_cast<std::uint32_t>(i))});
    }
  }
  return chunks;
}

void expect_as_modelled(const std::vector<Chunk>& chunks, std::uint32_t used) {
  for (std::uint64_t offset = 0; offset <= kLimit; ++offset) {
    for (std::uint64_t bytes = 1; bytes <= kLimit + 1; ++bytes) {
      bool all = true;
      for (std::uint64_t i = offset; i < offset + bytes; ++i) {
        all = all && i < kLimit && (used >> i & 1U) != 0;
      }
      ASSERT_EQ(covers(chunks, offset, bytes), all) << used << ' ' << offset << ' ' << bytes;
      const auto in_one = std::ranges::find_if(chunks, [&](const Chunk& chunk) {
        return offset >= chunk.offset && offset + bytes <= chunk.offset + chunk.bytes;
      });
      const Chunk* found = chunk_around(chunks, offset, bytes);
      ASSERT_EQ(found == nullptr, in_one == chunks.end());
      ASSERT_TRUE(found == nullptr || *found == *in_one);
    }
  }
}

void expect_place(const std::vector<Chunk>& chunks, std::uint32_t used) {
  for (std::uint64_t limit = 0; limit <= kLimit; ++limit) {
    for (std::uint64_t bytes = 1; bytes <= kLimit; ++bytes) {
      std::optional<std::uint64_t> lowest;
      for (std::uint64_t offset = 0; offset + bytes <= limit && !lowest; ++offset) {
        const std::uint32_t wanted = ((1U << bytes) - 1) << offset;
        lowest = (used & wanted) == 0 ? std::optional(offset) : std::nullopt;
      }
      // With a chunk beyond the limit there is no promise.
      if (chunks.empty() || chunks.back().offset + chunks.back().bytes <= limit) {
        ASSERT_EQ(place_between(chunks, bytes, limit), lowest)
            << used << ' ' << bytes << ' ' << limit;
      }
    }
  }
}

TEST(ChunkMap, LookUpsAgreeWithSingleBytesInEveryLayoutOfSevenBytes) {
  for (std::uint32_t used = 0; used < 1U << kLimit; ++used) {
    for (std::uint32_t cuts = 0; cuts < 1U << kLimit; ++cuts) {
      const std::vector<Chunk> chunks = layout(used, cuts);
      expect_as_modelled(chunks, used);
      expect_place(chunks, used);
    }
  }
}

TEST(ChunkMap, NoRangeThatWrapsAroundIsCovered) {
  const std::vector<Chunk> chunks{{.offset = 0, .bytes = 64, .region = {}}};
  EXPECT_FALSE(covers(chunks, 32, UINT64_MAX));
  EXPECT_FALSE(covers(chunks, UINT64_MAX, 2));
  EXPECT_EQ(chunk_around(chunks, 32, UINT64_MAX), nullptr);
  EXPECT_EQ(chunk_around(chunks, UINT64_MAX, 2), nullptr);
}

TEST(ChunkMap, AReaderSeesWhatWasAddedAndNotWhatWasRemoved) {
  ChunkMap map;
  ChunkReader reader(&map);
  EXPECT_TRUE(reader.now().empty());
  map.add({.offset = 64, .bytes = 64, .region = RegionIndex(2)});
  map.add({.offset = 0, .bytes = 64, .region = RegionIndex(1)});
  ASSERT_EQ(reader.now().size(), 2U);
  EXPECT_EQ(reader.now()[0].region, RegionIndex(1));
  EXPECT_TRUE(map.covers(32, 64));
  map.remove(64);
  EXPECT_EQ(reader.now().size(), 1U);
  EXPECT_FALSE(map.covers(32, 64));
  EXPECT_TRUE(ChunkReader(nullptr).now().empty());
}

TEST(ChunkMap, AReaderInAnotherThreadSeesWhatItWasToldOf) {
  constexpr std::uint64_t kRounds = 2000;
  ChunkMap map;
  map.add({.offset = 0, .bytes = 1, .region = {}});
  const std::jthread writer([&map] {
    for (std::uint64_t i = 1; i <= kRounds; ++i) {
      map.add({.offset = i, .bytes = 1, .region = {}});
      if (i > 2) {
        map.remove(i - 1);
      }
    }
  });
  ChunkReader reader(&map);
  std::uint64_t last = 0;
  while (last < kRounds) {
    const auto chunks = reader.now();
    ASSERT_EQ(chunks.front().offset, 0U);
    ASSERT_TRUE(std::ranges::is_sorted(chunks, {}, &Chunk::offset));
    ASSERT_GE(chunks.back().offset, last);
    last = chunks.back().offset;
  }
}

}  // namespace
}  // namespace weft::heap
