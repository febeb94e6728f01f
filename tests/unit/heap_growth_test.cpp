// A device heap that grows: which chunks it takes and gives back, and that all PEs do the same or
// nothing. PEs are threads; their GPUs' memory is the host's.
#include "src/runtime/device/heap_growth.hpp"

#include <gtest/gtest.h>

#include <functional>
#include <memory>
#include <span>
#include <string>
#include <thread>
#include <vector>

#include "src/base/error.hpp"
#include "src/bootstrap/in_process.hpp"
#include "tests/support/fake_segments.hpp"

namespace weft::test {
namespace {

using heap::Chunk;
using heap::Growth;
using runtime::HeapGrowth;

constexpr std::uint64_t kMiB = std::uint64_t{1} << 20U;
constexpr std::uint64_t kControl = 4 * kMiB;
constexpr std::uint64_t kFirst = 64 * kMiB;
constexpr std::uint64_t kLimit = 4096 * kMiB;

std::unique_ptr<FakeSegments> make_fake(std::uint32_t slot_count = 1, std::uint32_t slot = 0) {
  return std::make_unique<FakeSegments>(gpu::SegmentPlan{
      .bytes = kFirst, .reserved_bytes = kLimit, .slot_count = slot_count, .my_slot = slot});
}

heap::DeviceHeap make_heap() {
  return {make_fake(), Pe(0), 1, kControl};
}

// Grows a heap that has no PEs besides.
void grow(heap::DeviceHeap& heap, std::uint64_t bytes) {
  const auto part = heap.plan_growth(bytes, Growth::Ample);
  ASSERT_TRUE(part.has_value());
  static_cast<void>(heap.segments().add_part(*part));
  heap.add_chunk({.offset = part->offset, .bytes = part->bytes, .region = {}});
}

TEST(DeviceHeap, ABlockLiesInOneChunkAndAddressesAreFromOneRange) {
  heap::DeviceHeap heap = make_heap();
  EXPECT_NE(heap.allocate(kFirst - kControl, 256), nullptr);
  EXPECT_EQ(heap.allocate(256, 256), nullptr);
  grow(heap, 256);
  std::byte* late = heap.allocate(heap::kGrowthBytesMin, heap::kChunkUnit);
  ASSERT_NE(late, nullptr);
  EXPECT_EQ(heap.offset_of(late), kFirst);
  late[heap::kGrowthBytesMin - 1] = std::byte{7};
  EXPECT_TRUE(heap.contains(late, heap::kGrowthBytesMin));
  EXPECT_FALSE(heap.contains(late, heap::kGrowthBytesMin + 1));
  EXPECT_FALSE(heap.contains(heap.base() + kControl - 1, 1));
  EXPECT_EQ(heap.user_bytes(), kFirst - kControl + heap::kGrowthBytesMin);
  EXPECT_EQ(heap.limit(), kLimit);
}

TEST(DeviceHeap, AlignmentsCountFromTheHeapsStartInEveryChunk) {
  heap::DeviceHeap heap = make_heap();
  grow(heap, 1);  // at 64 MiB
  grow(heap, 1);
  for (const std::uint64_t alignment : {kMiB, 4 * kMiB, 32 * kMiB, 64 * kMiB, 128 * kMiB}) {
    // More than one, so that later chunks give some.
    for (int i = 0; i < 3; ++i) {
      std::byte* block = heap.allocate(alignment > 32 * kMiB ? 4096 : 20 * kMiB, alignment);
      if (block != nullptr) {
        EXPECT_EQ(heap.offset_of(block) % alignment, 0U) << alignment;
      }
      EXPECT_TRUE(block != nullptr || i > 0) << alignment;
    }
  }
}

TEST(DeviceHeap, RoomAtTheEndOfOneChunkIsNotJoinedWithTheNext) {
  heap::DeviceHeap heap = make_heap();
  grow(heap, 256);
  EXPECT_EQ(heap.largest_free_block(), heap::kGrowthBytesMin);
  EXPECT_EQ(heap.free_bytes(), heap::kGrowthBytesMin + kFirst - kControl);
  EXPECT_EQ(heap.allocate(heap::kGrowthBytesMin + 1, 256), nullptr);
}

TEST(DeviceHeap, OnlyAChunkWithoutABlockIsEmptyAndTheFirstNeverIs) {
  heap::DeviceHeap heap = make_heap();
  EXPECT_TRUE(heap.empty_chunks().empty());
  grow(heap, 100 * kMiB);
  std::byte* block = heap.allocate(100 * kMiB, 256);
  EXPECT_TRUE(heap.empty_chunks().empty());
  EXPECT_FALSE(heap.release(block + 256));
  EXPECT_TRUE(heap.release(block));
  EXPECT_FALSE(heap.release(block));
  ASSERT_EQ(heap.empty_chunks().size(), 1U);
  heap.remove_chunk(heap.empty_chunks().front());
  EXPECT_FALSE(heap.contains(block, 1));
  EXPECT_FALSE(heap.release(block));
  EXPECT_EQ(heap.chunks().all().size(), 1U);
}

TEST(DeviceHeap, APlaceThatBecameFreeIsTakenAgain) {
  heap::DeviceHeap heap = make_heap();
  grow(heap, 300 * kMiB);
  const Chunk middle = heap.chunks().all().back();
  grow(heap, 400 * kMiB);
  heap.remove_chunk(middle);
  EXPECT_EQ(heap.plan_growth(300 * kMiB, Growth::Ample)->offset, middle.offset);
  EXPECT_EQ(heap.plan_growth(302 * kMiB, Growth::Exact)->offset, middle.offset + 700 * kMiB);
}

TEST(DeviceHeap, GrowthIsAmpleExactOrImpossible) {
  heap::DeviceHeap heap = make_heap();
  const auto bytes = [&heap](std::uint64_t wanted, Growth growth) {
    const auto part = heap.plan_growth(wanted, growth);
    return part ? part->bytes : 0;
  };
  EXPECT_EQ(bytes(1, Growth::Ample), heap::kGrowthBytesMin);
  EXPECT_EQ(bytes(1, Growth::Exact), heap::kChunkUnit);
  EXPECT_EQ(bytes(kLimit - kFirst, Growth::Ample), kLimit - kFirst);
  EXPECT_EQ(bytes(kLimit - kFirst + 1, Growth::Ample), 0U);
  EXPECT_EQ(bytes(UINT64_MAX, Growth::Exact), 0U);
  grow(heap, 3000 * kMiB);
  EXPECT_EQ(bytes(1, Growth::Ample), 384 * kMiB);  // an eighth of what is there, rounded up
  heap.limit_to(heap.user_bytes() + kControl + 10 * kMiB);
  EXPECT_EQ(bytes(1, Growth::Ample), heap::kChunkUnit);  // there is no place for more
  heap.limit_to(0);
  EXPECT_EQ(heap.limit(), kFirst);
  EXPECT_FALSE(heap.can_grow());
  EXPECT_EQ(bytes(1, Growth::Exact), 0U);
}

TEST(DeviceHeap, ItHasAtMost64Chunks) {
  heap::DeviceHeap heap = make_heap();
  for (std::uint32_t i = 1; i < heap::kChunkCountMax; ++i) {
    const auto part = heap.plan_growth(1, Growth::Exact);
    heap.add_chunk({.offset = part->offset, .bytes = part->bytes, .region = {}});
  }
  EXPECT_FALSE(heap.plan_growth(1, Growth::Exact).has_value());
}

// ---- Several PEs.

struct GrowingPe {
  FakeSegments* segments = nullptr;  // of the heap
  std::unique_ptr<heap::DeviceHeap> heap;
  std::unique_ptr<bootstrap::Bootstrap> bootstrap;
  std::unique_ptr<HeapGrowth> growth;
  std::vector<Chunk> connected;
  std::vector<Chunk> disconnected;
  bool nic_refuses = false;  // the chunk at offset kFirst, as all PEs learn
};

// PEs 0 and 1 are one node, PE 2 another.
constexpr std::uint32_t kPeCount = 3;

class HeapGrowthTest : public ::testing::Test {
 protected:
  HeapGrowthTest() {
    for (std::uint32_t pe = 0; pe < kPeCount; ++pe) {
      auto fake = pe < 2 ? make_fake(2, pe) : make_fake();
      pes_[pe].segments = fake.get();
      pes_[pe].heap =
          std::make_unique<heap::DeviceHeap>(std::move(fake), Pe(pe), kPeCount, kControl);
      pes_[pe].bootstrap = group_.take(Pe(pe));
    }
    for (std::uint32_t pe = 0; pe < 2; ++pe) {
      pes_[pe].heap->map_peer(Pe(1 - pe), 1 - pe, pes_[1 - pe].segments->offer());
    }
    for (std::uint32_t pe = 0; pe < kPeCount; ++pe) {
      make_growth(pe);
    }
  }

  void make_growth(std::uint32_t pe) {
    GrowingPe& one = pes_[pe];
    std::vector<std::uint32_t> slots(kPeCount, HeapGrowth::kNotHere);
    if (pe < 2) {
      slots[1 - pe] = 1 - pe;
    }
    one.growth = std::make_unique<HeapGrowth>(HeapGrowth::Parts{
        .heap = *one.heap,
        .bootstrap = *one.bootstrap,
        .slots = slots,
        .connect =
            [&one](const Chunk& chunk) {
              if (one.nic_refuses) {
                fail(Status::OutOfMemory, "no NIC takes it");
              }
              one.connected.push_back(chunk);
            },
        .disconnect = [&one](const Chunk& chunk) { one.disconnected.push_back(chunk); },
        .regions = {RegionIndex(5), RegionIndex(6), RegionIndex(7)}});
  }

  // Runs `step` on all PEs at once. Returns the errors.
  std::vector<std::string> on_all(const std::function<void(GrowingPe&)>& step) {
    std::vector<std::string> errors(kPeCount);
    std::vector<std::jthread> threads;
    for (std::uint32_t pe = 0; pe < kPeCount; ++pe) {
      threads.emplace_back([&, pe] {
        try {
          step(pes_[pe]);
        } catch (const Error& error) {
          errors[pe] = error.what();
        }
      });
    }
    threads.clear();
    return errors;
  }

  std::vector<std::string> grow_all(std::uint64_t bytes) {
    return on_all([bytes](GrowingPe& one) { one.growth->grow(bytes); });
  }

  void expect_unchanged() {
    for (GrowingPe& one : pes_) {
      EXPECT_EQ(one.segments->part_count(), 0U);
      EXPECT_EQ(one.heap->chunks().all().size(), 1U);
      EXPECT_EQ(one.heap->user_bytes(), kFirst - kControl);
    }
  }

  const std::vector<std::string> none_{"", "", ""};
  bootstrap::InProcessGroup group_{kPeCount};
  std::array<GrowingPe, kPeCount> pes_;
};

TEST_F(HeapGrowthTest, AllPesGetTheChunkAtOneOffsetAndThoseOfANodeSeeEachOthers) {
  EXPECT_EQ(grow_all(300 * kMiB), none_);
  const Chunk expected{.offset = kFirst, .bytes = 300 * kMiB, .region = RegionIndex(5)};
  for (GrowingPe& one : pes_) {
    EXPECT_EQ(one.heap->chunks().all().back(), expected);
    EXPECT_EQ(one.connected, std::vector{expected});
    EXPECT_EQ(one.segments->closed(), 1);
  }
  std::byte* mine = pes_[0].heap->allocate(300 * kMiB, 256);
  ASSERT_NE(mine, nullptr);
  mine[5] = std::byte{42};
  EXPECT_EQ(pes_[1].heap->mapped_base(Pe(0)) [pes_[0].heap->offset_of(mine) + 5], std::byte { 42 });
}

TEST_F(HeapGrowthTest, EmptyChunksAreGivenBackAndTheirNumbersUsedAgain) {
  EXPECT_EQ(grow_all(300 * kMiB), none_);
  EXPECT_EQ(grow_all(400 * kMiB), none_);
  on_all([](GrowingPe& one) {
    std::byte* later = one.heap->allocate(400 * kMiB, 256);
    one.growth->give_back();
    EXPECT_EQ(one.heap->offset_of(later), kFirst + 300 * kMiB);
  });
  for (GrowingPe& one : pes_) {
    EXPECT_EQ(one.segments->part_count(), 1U);
    ASSERT_EQ(one.disconnected.size(), 1U);
    EXPECT_EQ(one.disconnected[0].region, RegionIndex(5));
  }
  EXPECT_EQ(grow_all(1), none_);
  EXPECT_EQ(pes_[1].heap->chunks().all()[1],
            (Chunk{.offset = kFirst, .bytes = heap::kGrowthBytesMin, .region = RegionIndex(5)}));
  pes_[2].growth->disconnect_all();
  EXPECT_EQ(pes_[2].disconnected.size(), 3U);
}

TEST_F(HeapGrowthTest, OneFullGpuFailsItForAllWithOneMessageAndNothingIsLost) {
  pes_[2].segments->add_bytes_max = 200 * kMiB;
  const auto errors = grow_all(300 * kMiB);
  EXPECT_EQ(errors[0], "PE 2: 300 MiB do not fit onto the fake GPU");
  EXPECT_EQ(errors, (std::vector<std::string>{errors[0], errors[0], errors[0]}));
  expect_unchanged();
  EXPECT_TRUE(pes_[0].connected.empty());
}

TEST_F(HeapGrowthTest, WhereOneGpuIsAlmostFullAllGrowByWhatIsAskedFor) {
  pes_[1].segments->add_bytes_max = 200 * kMiB;
  EXPECT_EQ(grow_all(150 * kMiB), none_);
  for (GrowingPe& one : pes_) {
    EXPECT_EQ(one.heap->chunks().all().back().bytes, 150 * kMiB);
  }
}

TEST_F(HeapGrowthTest, OnePeThatCannotMapFailsItForAll) {
  pes_[1].segments->map_fails = true;
  const auto errors = grow_all(300 * kMiB);
  EXPECT_EQ(errors[2], "PE 1: the fake GPU cannot reach PE 0");
  EXPECT_EQ(errors, (std::vector<std::string>{errors[2], errors[2], errors[2]}));
  expect_unchanged();
  pes_[1].segments->map_fails = false;
  EXPECT_EQ(grow_all(300 * kMiB), none_);
}

TEST_F(HeapGrowthTest, NicsThatRefuseTheChunkLeaveTheHeapAsItWas) {
  for (GrowingPe& one : pes_) {
    one.nic_refuses = true;
  }
  EXPECT_EQ(grow_all(300 * kMiB), (std::vector<std::string>(3, "no NIC takes it")));
  expect_unchanged();
}

// Memory of a PE's program that other PEs can import.
class ProgramMemory {
 public:
  ProgramMemory(FakeSegments& segments, std::uint64_t bytes)
      : segments_(segments), bytes_(bytes), file_(::memfd_create("program", MFD_CLOEXEC)) {
    WEFT_CHECK(::ftruncate(file_.get(), static_cast<off_t>(bytes)) == 0, "{} bytes", bytes);
    memory_ = static_cast<std::byte*>(
        ::mmap(nullptr, bytes, PROT_READ | PROT_WRITE, MAP_SHARED, file_.get(), 0));
    segments_.exportable[memory_] = file_.get();
  }

  ProgramMemory(const ProgramMemory&) = delete;
  ProgramMemory& operator=(const ProgramMemory&) = delete;

  ~ProgramMemory() {
    segments_.exportable.erase(memory_);
    ::munmap(memory_, bytes_);
  }

  [[nodiscard]] std::span<std::byte> all() const { return {memory_, bytes_}; }

 private:
  FakeSegments& segments_;
  std::uint64_t bytes_;
  FileDescriptor file_;
  std::byte* memory_ = nullptr;
};

class AdoptionTest : public HeapGrowthTest {
 protected:
  static constexpr std::uint64_t kBytes = 6 * kMiB;

  AdoptionTest() {
    for (GrowingPe& one : pes_) {
      memory_.push_back(std::make_unique<ProgramMemory>(*one.segments, kBytes));
    }
  }

  std::vector<std::string> adopt_all(const std::function<void(GrowingPe&)>& check = [](GrowingPe&) {
  }) {
    return on_all([&](GrowingPe& one) {
      static_cast<void>(one.growth->adopt(memory_of(one).all(), [&] { check(one); }));
    });
  }

  [[nodiscard]] ProgramMemory& memory_of(const GrowingPe& one) const {
    return *memory_[static_cast<std::size_t>(&one - pes_.data())];
  }

  std::vector<std::unique_ptr<ProgramMemory>> memory_;
};

TEST_F(AdoptionTest, TheProgramsMemoryIsAChunkThatPeersSeeAndNoBlockUses) {
  EXPECT_EQ(adopt_all(), none_);
  const Chunk expected{.offset = kFirst, .bytes = kBytes, .region = RegionIndex(5)};
  for (GrowingPe& one : pes_) {
    EXPECT_EQ(one.heap->chunks().all().back(), expected);
    EXPECT_EQ(one.connected, std::vector{expected});
    EXPECT_EQ(one.heap->user_bytes(), kFirst - kControl);
    EXPECT_TRUE(one.heap->contains(one.heap->base() + kFirst, kBytes));
    EXPECT_FALSE(one.heap->release(one.heap->base() + kFirst));
  }
  memory_[0]->all()[9] = std::byte{42};
  EXPECT_EQ(pes_[0].heap->base()[kFirst + 9], std::byte{42});
  EXPECT_EQ(pes_[1].heap->mapped_base(Pe(0)) [kFirst + 9], std::byte { 42 });
  EXPECT_NE(pes_[0].heap->allocate(kFirst - kControl, 256), nullptr);
  EXPECT_EQ(pes_[0].heap->allocate(256, 256), nullptr);
}

TEST_F(AdoptionTest, GivingBackLeavesItAndItsPlaceIsFreeWhenItIsRemoved) {
  EXPECT_EQ(adopt_all(), none_);
  EXPECT_EQ(grow_all(300 * kMiB), none_);
  on_all([](GrowingPe& one) {
    one.growth->give_back();
    ASSERT_EQ(one.heap->chunks().all().size(), 2U);
    one.growth->remove(one.heap->chunks().all().back());
  });
  expect_unchanged();
  for (GrowingPe& one : pes_) {
    EXPECT_EQ(one.disconnected.size(), 2U);
    memory_of(one).all()[0] = std::byte{1};  // still the program's
  }
  EXPECT_EQ(adopt_all(), none_);
  EXPECT_EQ(pes_[2].heap->chunks().all().back(),
            (Chunk{.offset = kFirst, .bytes = kBytes, .region = RegionIndex(5)}));
}

TEST_F(AdoptionTest, OnePeWhoseMemoryCannotBeImportedFailsItForAll) {
  pes_[1].segments->exportable.clear();
  const auto errors = adopt_all();
  EXPECT_TRUE(errors[0].starts_with("PE 1: ") &&
              errors[0].ends_with("is not memory of virtual memory management"))
      << errors[0];
  EXPECT_EQ(errors, (std::vector<std::string>{errors[0], errors[0], errors[0]}));
  expect_unchanged();
}

TEST_F(AdoptionTest, WhatOnePeHasAgainstItAllHear) {
  const auto errors = adopt_all([this](GrowingPe& one) {
    if (&one == &pes_[2]) {
      fail(Status::InvalidArgument, "it is symmetric already");
    }
  });
  EXPECT_EQ(errors, (std::vector<std::string>(3, "PE 2: it is symmetric already")));
  expect_unchanged();
}

TEST_F(AdoptionTest, ANicThatRefusesItLeavesTheHeapAsItWas) {
  for (GrowingPe& one : pes_) {
    one.nic_refuses = true;
  }
  EXPECT_EQ(adopt_all(), (std::vector<std::string>(3, "no NIC takes it")));
  expect_unchanged();
}

TEST_F(AdoptionTest, WhereNoAddressesAreLeftItNamesTheSetting) {
  for (GrowingPe& one : pes_) {
    one.heap->limit_to(kFirst + kBytes - 1);
  }
  const auto errors = adopt_all();
  EXPECT_TRUE(errors[0].starts_with("6 MiB have no place among the")) << errors[0];
  EXPECT_TRUE(errors[0].find("WEFT_DEVICE_HEAP_MAX") != std::string::npos) << errors[0];
  expect_unchanged();
}

TEST_F(HeapGrowthTest, BeyondItsLimitItSaysHowFarItMayGrow) {
  const auto errors = grow_all(kLimit);
  EXPECT_EQ(errors[0],
            "it has 60 MiB in 1 chunks, and 4 GiB more are beyond the 4 GiB to which it may grow: "
            "WEFT_DEVICE_HEAP_MAX, the least of the GPUs' memory, and 64 chunks");
  EXPECT_EQ(errors[2], errors[0]);
  expect_unchanged();
}

}  // namespace
}  // namespace weft::test
