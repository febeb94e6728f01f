// Blocks of any alignment up to the heap's size, at the same offset and really aligned on each PE.
#include <gtest/gtest.h>

#include <bit>

#include "src/collectives/control.hpp"
#include "src/heap/heap.hpp"

namespace weft::heap {
namespace {

constexpr std::uint64_t kMiB = std::uint64_t{1} << 20U;

TEST(HeapAlignment, EveryPowerOfTwoUpToTheHeapsSizeIsToBeHad) {
  for (const std::uint64_t bytes : {4 * kMiB, 8 * kMiB, 96 * kMiB, 1024 * kMiB, 3000 * kMiB}) {
    Heap first(Pe(0), 2, bytes, collectives::kControlBytes);
    Heap second(Pe(1), 2, bytes, collectives::kControlBytes);
    EXPECT_EQ(first.alignment_max(), std::bit_floor(bytes));
    for (std::uint64_t alignment = 8; alignment <= std::bit_floor(bytes); alignment *= 2) {
      void* here = first.allocate(8, alignment);
      void* there = second.allocate(8, alignment);
      ASSERT_NE(here, nullptr) << bytes << " bytes, alignment " << alignment;
      EXPECT_EQ(reinterpret_cast<std::uintptr_t>(here) % alignment, 0U);
      EXPECT_EQ(reinterpret_cast<std::uintptr_t>(there) % alignment, 0U);
      EXPECT_EQ(first.offset_of(here), second.offset_of(there));
      EXPECT_TRUE(first.release(here));
      EXPECT_TRUE(second.release(there));
    }
  }
}

TEST(HeapAlignment, TheLeastAlignedPeSetsTheLargestForAll) {
  Heap heap(Pe(0), 2, 64 * kMiB, collectives::kControlBytes);
  SegmentOffer other = heap.offer();
  other.base = 7 * Segment::kAlignment * 4;
  heap.map_peers({heap.offer(), other}, {true, false});
  EXPECT_EQ(heap.alignment_max(), 4 * Segment::kAlignment);
}

TEST(HeapAlignment, ASmallHeapKeepsWhatASegmentHas) {
  const Heap heap(Pe(0), 1, 65536, 4096);
  EXPECT_EQ(heap.alignment_max(), Segment::kAlignment);
}

}  // namespace
}  // namespace weft::heap
