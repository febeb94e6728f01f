// Numbers of windows: the lowest that is free, so that all PEs choose the same; bounded; used
// again.
// Where the bytes of a window and of the heap are found.
#include <gtest/gtest.h>

#include <vector>

#include "src/heap/heap.hpp"

namespace weft::heap {
namespace {

class HeapWindows : public ::testing::Test {
 protected:
  RegionIndex add(std::size_t i) { return heap.regions().add_window(memory.data() + i * 16, 16); }

  Heap heap{Pe(0), 1, 65536, 4096};
  std::vector<std::byte> memory = std::vector<std::byte>(2 * kRegionCountMax * 16);
};

TEST_F(HeapWindows, TakeTheLowestNumberThatIsFree) {
  for (std::uint32_t i = 1; i <= 5; ++i) {
    EXPECT_EQ(heap.regions().next_window(), RegionIndex(i));
    EXPECT_EQ(add(i), RegionIndex(i));
  }
  EXPECT_EQ(heap.regions().remove_window(memory.data() + 4 * 16), RegionIndex(4));
  EXPECT_EQ(heap.regions().remove_window(memory.data() + 2 * 16), RegionIndex(2));
  EXPECT_EQ(heap.regions().remove_window(memory.data() + 2 * 16), std::nullopt) << "is gone";
  EXPECT_EQ(heap.region_of(memory.data() + 2 * 16), std::nullopt);
  EXPECT_EQ(add(7), RegionIndex(2));
  EXPECT_EQ(add(8), RegionIndex(4));
  EXPECT_EQ(add(9), RegionIndex(6));
  EXPECT_EQ(heap.region_of(memory.data() + 7 * 16 + 3), RegionIndex(2));
  EXPECT_EQ(heap.region_of(memory.data() + 5 * 16), RegionIndex(5));
}

TEST_F(HeapWindows, AreFoundWithTheirMappingIfTheyHaveAllTheBytes) {
  ASSERT_EQ(add(3), RegionIndex(1));
  const std::byte* inside = memory.data() + 3 * 16 + 5;
  Place place;
  ASSERT_TRUE(heap.find(inside, 11, Pe(0), place));
  EXPECT_EQ(place.region, RegionIndex(1));
  EXPECT_EQ(place.offset, HeapOffset(5));
  EXPECT_EQ(place.mapped, inside);
  EXPECT_EQ(place.after(4).offset, HeapOffset(9));
  EXPECT_EQ(place.after(4).mapped, inside + 4);
  EXPECT_FALSE(heap.find(inside, 12, Pe(0), place)) << "reaches beyond its end";
  EXPECT_FALSE(heap.find(memory.data(), 1, Pe(0), place)) << "is in none";
  const std::byte* last = heap.base() + heap.size() - 8;
  ASSERT_TRUE(heap.find(last, 8, Pe(0), place));
  EXPECT_EQ(place.mapped, last);
  EXPECT_FALSE(heap.find(last, 9, Pe(0), place)) << "reaches beyond the heap";
}

TEST_F(HeapWindows, AreAtAPlaceWithoutAMappingOnAPeer) {
  Heap of_two{Pe(0), 2, 65536, 4096};
  const Place there = of_two.place_of(of_two.base() + 4096, Pe(1));
  EXPECT_EQ(there.region, RegionIndex(0));
  EXPECT_EQ(there.offset, HeapOffset(4096));
  EXPECT_EQ(there.mapped, nullptr);
  EXPECT_EQ(there.after(8).mapped, nullptr);
  EXPECT_EQ(of_two.regions().add_window(memory.data(), 64), RegionIndex(1));
  EXPECT_EQ(of_two.place_of(memory.data() + 7, Pe(0)).mapped, memory.data() + 7);
  EXPECT_EQ(of_two.place_of(memory.data() + 7, Pe(1)).mapped, nullptr);
  EXPECT_EQ(of_two.place_of(memory.data() + 7, Pe(1)).region, RegionIndex(1));
}

TEST_F(HeapWindows, OneOfNoBytesKeepsItsNumber) {
  EXPECT_EQ(heap.regions().add_window(nullptr, 0), RegionIndex(1));
  EXPECT_EQ(heap.regions().next_window(), RegionIndex(2));
}

TEST_F(HeapWindows, AreBounded) {
  for (std::uint32_t i = 1; i < kRegionCountMax; ++i) {
    EXPECT_EQ(add(i), RegionIndex(i));
  }
  EXPECT_EQ(heap.regions().next_window(), std::nullopt);
  EXPECT_TRUE(heap.regions().remove_window(memory.data() + 500 * 16).has_value());
  EXPECT_EQ(heap.regions().next_window(), RegionIndex(500));
}

}  // namespace
}  // namespace weft::heap
