// Small copies of the cma transport that are gathered: when they are issued, and what a bad one
// does to its neighbours.
#include <gtest/gtest.h>

#include <array>
#include <cstring>
#include <numeric>
#include <thread>

#include <sys/mman.h>

#include "tests/conformance/cma_pes.hpp"

namespace weft::test {
namespace {

using namespace transport;
using cma::CopyBatch;
using cma::SlotPath;

constexpr std::size_t kPageBytes = 4096;

class CmaBatch : public ::testing::Test {
 protected:
  [[nodiscard]] Operation get(std::uint64_t offset, void* dest, std::size_t bytes = 1) {
    return {.kind = OperationKind::Get,
            .peer = Pe(1),
            .remote = {.region = {}, .offset = HeapOffset(offset)},
            .local = dest,
            .bytes = bytes,
            .update = {},
            .counter = &counter_};
  }

  CmaPes pes_{2, 256 * kPageBytes, {.slot_path = SlotPath::Never, .is_dead = {}}};
  Transport& me_ = pes_.transport(Pe(0));
  OperationCounter counter_;
};

TEST_F(CmaBatch, GetsWaitForFlushOrProgressOrForTheQueueToFill) {
  std::array<std::byte, CopyBatch::kItemsMax + 1> dest{};
  for (std::size_t i = 0; i < dest.size(); ++i) {
    pes_.heap(Pe(1))[i] = static_cast<std::byte>(i + 1);
  }
  const auto post = [&](std::size_t i) { ASSERT_EQ(me_.post(get(i, &dest[i])), Status::Ok); };
  post(0);
  EXPECT_FALSE(counter_.is_idle());
  EXPECT_EQ(dest[0], std::byte{0});
  me_.flush(Pe(1));
  EXPECT_TRUE(counter_.is_idle());
  EXPECT_EQ(dest[0], std::byte{1});
  post(1);
  EXPECT_TRUE(me_.progress());
  EXPECT_TRUE(counter_.is_idle());
  EXPECT_EQ(dest[1], std::byte{2});
  EXPECT_FALSE(me_.progress());
  dest.fill(std::byte{0});
  for (std::size_t i = 0; i < dest.size(); ++i) {
    post(i);
  }
  EXPECT_EQ(dest[CopyBatch::kItemsMax - 1], std::byte{CopyBatch::kItemsMax});
  EXPECT_EQ(dest[CopyBatch::kItemsMax], std::byte{0});
  me_.flush(Pe(1));
  EXPECT_EQ(dest[CopyBatch::kItemsMax], std::byte{CopyBatch::kItemsMax + 1});
}

TEST_F(CmaBatch, AnOperationOfAnotherKindIssuesWhatWaits) {
  std::byte dest{};
  pes_.heap(Pe(1))[100] = std::byte{9};
  ASSERT_EQ(me_.post(get(100, &dest)), Status::Ok);
  OperationCounter atomics;
  ASSERT_EQ(me_.post({.kind = OperationKind::Atomic,
                      .peer = Pe(1),
                      .remote = {},
                      .bytes = 8,
                      .update = {.code = AtomicCode::Add, .word = {}, .operand = 1},
                      .counter = &atomics}),
            Status::Ok);
  EXPECT_TRUE(counter_.is_idle());
  EXPECT_EQ(dest, std::byte{9});
}

TEST_F(CmaBatch, ManyBytesAreIssuedBeforeManyOperations) {
  constexpr std::size_t kBytes = 4096;
  std::vector<std::byte> dest(kBytes * (CopyBatch::kBytesMax / kBytes + 1));
  for (std::size_t at = 0; at < dest.size(); at += kBytes) {
    pes_.heap(Pe(1))[at] = std::byte{7};
    ASSERT_EQ(me_.post(get(at, &dest[at], kBytes)), Status::Ok);
  }
  EXPECT_EQ(dest[0], std::byte{7});
  EXPECT_EQ(dest[dest.size() - kBytes], std::byte{0});
  me_.flush(Pe(1));
  EXPECT_EQ(dest[dest.size() - kBytes], std::byte{7});
}

TEST_F(CmaBatch, AnAddressThatFaultsFailsItsOwnOperationAlone) {
  void* hole = ::mmap(nullptr, kPageBytes, PROT_NONE, MAP_PRIVATE | MAP_ANONYMOUS, -1, 0);
  ASSERT_NE(hole, MAP_FAILED);
  std::array<std::byte, 3> dest{};
  std::fill_n(pes_.heap(Pe(1)), 3, std::byte{5});
  OperationCounter bad;
  ASSERT_EQ(me_.post(get(0, &dest[0])), Status::Ok);
  Operation faults = get(1, hole);
  faults.counter = &bad;
  ASSERT_EQ(me_.post(faults), Status::Ok);
  ASSERT_EQ(me_.post(get(2, &dest[2])), Status::Ok);
  me_.flush(Pe(1));
  EXPECT_TRUE(bad.is_idle() && bad.has_failed());
  EXPECT_TRUE(counter_.is_idle() && !counter_.has_failed());
  EXPECT_EQ(dest[2], std::byte{5});
  EXPECT_EQ(me_.peer_status(Pe(1)), Status::Ok);
  ::munmap(hole, kPageBytes);
}

TEST_F(CmaBatch, ThreadsGatherForOnePeerWithoutLosingAnything) {
  constexpr std::size_t kEach = 20'000;
  constexpr std::size_t kWords = 1000;
  std::vector<std::uint32_t> words(kWords);
  std::iota(words.begin(), words.end(), 1);
  std::memcpy(pes_.heap(Pe(1)), words.data(), kWords * sizeof words[0]);
  std::vector<std::jthread> threads;
  for (int thread = 0; thread < 3; ++thread) {
    threads.emplace_back([&] {
      OperationCounter mine;
      std::vector<std::uint32_t> dest(kWords);
      for (std::size_t i = 0; i < kEach; ++i) {
        const std::size_t at = i % kWords;
        Operation operation = get(at * sizeof dest[0], &dest[at], sizeof dest[0]);
        operation.counter = &mine;
        ASSERT_EQ(me_.post(operation), Status::Ok);
        if (at == kWords - 1) {
          me_.flush(Pe(1));
          while (!mine.is_idle()) {
            me_.progress();
          }
          ASSERT_EQ(dest, words);
          std::fill(dest.begin(), dest.end(), 0);
        }
      }
    });
  }
}

}  // namespace
}  // namespace weft::test
