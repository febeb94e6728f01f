// Numbers of windows: the lowest that is free, so that all PEs choose the same; bounded; used
// again.
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
  EXPECT_EQ(heap.place_of(memory.data() + 2 * 16), std::nullopt);
  EXPECT_EQ(add(7), RegionIndex(2));
  EXPECT_EQ(add(8), RegionIndex(4));
  EXPECT_EQ(add(9), RegionIndex(6));
  EXPECT_EQ(heap.place_of(memory.data() + 7 * 16 + 3)->region, RegionIndex(2));
  EXPECT_EQ(heap.place_of(memory.data() + 5 * 16)->region, RegionIndex(5));
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
