// Collective allocation with PEs as threads: agreement, exhaustion, and a heap that is never lost.
#include <gtest/gtest.h>

#include <string>

#include <gmock/gmock.h>

#include "src/base/error.hpp"
#include "tests/support/thread_job.hpp"

namespace weft {
namespace {

using ::testing::AllOf;
using ::testing::HasSubstr;
using testing::run_pes;

template <typename Body>
std::string message_of(Body&& body) {
  try {
    body();
  } catch (const Error& error) {
    return error.what();
  }
  return "no error";
}

std::uint64_t offset_of(runtime::Runtime& runtime, const void* address) {
  return runtime.rma().heap().offset_of(address);
}

TEST(Allocation, DifferentSizesAreNamedAndTheHeapStaysAsItWas) {
  run_pes(3, [](runtime::Runtime& runtime) {
    void* before = runtime.heap().allocate(100, 64, false);
    const std::uint64_t mine = runtime.pe() == Pe(2) ? 64 : 32;
    EXPECT_THAT(
        message_of([&] { static_cast<void>(runtime.heap().allocate(mine, 64, false)); }),
        HasSubstr("weft_malloc: PE 2 asked for 64 bytes, PE 0 for 32; the arguments must be "
                  "the same on all PEs"));
    void* after = runtime.heap().allocate(100, 64, false);
    EXPECT_EQ(offset_of(runtime, after) - offset_of(runtime, before), 128U);
  });
}

TEST(Allocation, WhatDoesNotFitSaysWhatIsFreeAndTheProgramMayGoOn) {
  run_pes(2, [](runtime::Runtime& runtime) {
    EXPECT_THAT(
        message_of([&] { static_cast<void>(runtime.heap().allocate(8U << 20U, 64, false)); }),
        AllOf(HasSubstr("8 MiB do not fit into the heap of 4 MiB"), HasSubstr("4 MiB are free"),
              HasSubstr("WEFT_HEAP_SIZE")));
    EXPECT_NE(runtime.heap().allocate(4U << 20U, 64, false), nullptr);
  });
}

TEST(Allocation, ReleasingWhatIsNoBlockIsRefused) {
  run_pes(2, [](runtime::Runtime& runtime) {
    auto* block = static_cast<char*>(runtime.heap().allocate(100, 64, false));
    EXPECT_THAT(message_of([&] { runtime.heap().release(block + 1); }),
                HasSubstr("not the start of a block"));
    EXPECT_EQ(message_of([&] { runtime.heap().release(block); }), "no error");
    EXPECT_THAT(message_of([&] { runtime.heap().release(block); }),
                HasSubstr("not the start of a block"));
    EXPECT_EQ(message_of([&] { runtime.heap().release(nullptr); }), "no error");
  });
}

TEST(Allocation, ZeroedMemoryIsZeroAlsoWhenItIsReused) {
  run_pes(2, [](runtime::Runtime& runtime) {
    auto* first = static_cast<std::uint8_t*>(runtime.heap().allocate(1000, 64, false));
    std::fill_n(first, 1000, std::uint8_t{0xff});
    runtime.heap().release(first);
    const auto* second = static_cast<std::uint8_t*>(runtime.heap().allocate(1000, 64, true));
    EXPECT_EQ(second, first);
    EXPECT_THAT(std::vector<std::uint8_t>(second, second + 1000), ::testing::Each(0));
  });
}

TEST(Allocation, HonoursEveryPowerOfTwoAsAlignment) {
  Config config = testing::test_config();
  config.heap_size = std::uint64_t{8} << 20U;
  run_pes(
      2,
      [](runtime::Runtime& runtime) {
        for (std::uint64_t alignment = 1; alignment <= (8U << 20U); alignment *= 2) {
          void* block = runtime.heap().allocate(24, alignment, false);
          EXPECT_EQ(reinterpret_cast<std::uintptr_t>(block) % alignment, 0U);
          runtime.heap().release(block);
        }
        EXPECT_THAT(
            message_of([&] { static_cast<void>(runtime.heap().allocate(8, 16U << 20U, false)); }),
            HasSubstr("the alignment 16 MiB is more than 8 MiB, the largest"));
        EXPECT_THAT(message_of([&] { static_cast<void>(runtime.heap().allocate(8, 24, false)); }),
                    HasSubstr("the alignment 24 is not a power of two"));
      },
      config);
}

}  // namespace
}  // namespace weft
