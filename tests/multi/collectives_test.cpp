// Collectives with PEs as threads: many rounds back to back, sizes down to zero, and slow PEs.
#include <gtest/gtest.h>

#include <atomic>
#include <cstring>
#include <thread>
#include <vector>

#include "tests/support/thread_job.hpp"

namespace weft {
namespace {

using testing::run_pes;

std::uint8_t pattern(std::uint32_t from, std::uint32_t to, std::uint32_t round, std::size_t i) {
  return static_cast<std::uint8_t>(from * 31 + to * 17 + round * 7 + i);
}

// Every few rounds another PE is late.
void dawdle(std::uint32_t pe, std::uint32_t round) {
  if (round % 5 == pe % 5) {
    std::this_thread::sleep_for(std::chrono::microseconds(200));
  }
}

Status alltoall(runtime::Runtime& runtime,
                std::uint8_t* dest,
                const std::uint8_t* source,
                std::size_t bytes) {
  collectives::Collectives& all = runtime.collectives();
  return all.alltoall(
      all.world(), {reinterpret_cast<std::byte*>(dest), reinterpret_cast<const std::byte*>(source)},
      bytes);
}

Status broadcast(runtime::Runtime& runtime,
                 std::uint8_t* dest,
                 const std::uint8_t* source,
                 std::size_t bytes,
                 std::uint32_t root) {
  collectives::Collectives& all = runtime.collectives();
  return all.broadcast(
      all.world(), {reinterpret_cast<std::byte*>(dest), reinterpret_cast<const std::byte*>(source)},
      bytes, root);
}

class Collectives : public ::testing::TestWithParam<std::uint32_t> {};

TEST_P(Collectives, NoPeLeavesABarrierBeforeAllHaveEntered) {
  const std::uint32_t pe_count = GetParam();
  std::atomic<std::uint64_t> entered = 0;
  std::atomic<std::uint64_t> violations = 0;
  run_pes(pe_count, [&](runtime::Runtime& runtime) {
    for (std::uint64_t round = 1; round <= 50; ++round) {
      entered.fetch_add(1);
      ASSERT_EQ(runtime.collectives().barrier_all(runtime.default_context()), Status::Ok);
      violations.fetch_add(entered.load() < round * pe_count ? 1 : 0);
    }
  });
  EXPECT_EQ(violations.load(), 0U);
}

TEST_P(Collectives, AlltoallMovesEveryBlockInCallsBackToBack) {
  const std::uint32_t pe_count = GetParam();
  constexpr std::size_t kBytesMax = 1000;
  run_pes(pe_count, [&](runtime::Runtime& runtime) {
    const std::uint32_t me = runtime.pe().value;
    auto* source =
        static_cast<std::uint8_t*>(runtime.heap().allocate(pe_count * kBytesMax, 64, true));
    auto* dest =
        static_cast<std::uint8_t*>(runtime.heap().allocate(pe_count * kBytesMax, 64, true));
    std::uint32_t round = 0;
    for (const std::size_t bytes : {0, 1, 4, 8, 63, 1000, 3, 0, 17, 999, 8, 8, 8}) {
      for (std::uint32_t to = 0; to < pe_count; ++to) {
        for (std::size_t i = 0; i < bytes; ++i) {
          source[to * bytes + i] = pattern(me, to, round, i);
        }
      }
      dawdle(me, round);
      ASSERT_EQ(alltoall(runtime, dest, source, bytes), Status::Ok);
      for (std::uint32_t from = 0; from < pe_count; ++from) {
        for (std::size_t i = 0; i < bytes; ++i) {
          ASSERT_EQ(dest[from * bytes + i], pattern(from, me, round, i)) << from << " " << round;
        }
      }
      ++round;
    }
  });
}

TEST_P(Collectives, BroadcastReachesAllFromEveryRootInCallsBackToBack) {
  const std::uint32_t pe_count = GetParam();
  run_pes(pe_count, [&](runtime::Runtime& runtime) {
    const std::uint32_t me = runtime.pe().value;
    auto* source = static_cast<std::uint8_t*>(runtime.heap().allocate(4096, 64, true));
    auto* dest = static_cast<std::uint8_t*>(runtime.heap().allocate(4096, 64, true));
    for (std::uint32_t round = 0; round < 3 * pe_count; ++round) {
      const std::uint32_t root = (round * 7) % pe_count;
      const std::size_t bytes = (round * 997) % 4097;
      for (std::size_t i = 0; i < bytes; ++i) {
        source[i] = pattern(me, 0, round, i);
      }
      dawdle(me, round);
      ASSERT_EQ(broadcast(runtime, dest, source, bytes, root), Status::Ok);
      for (std::size_t i = 0; i < bytes; ++i) {
        ASSERT_EQ(dest[i], pattern(root, 0, round, i)) << root << " " << round;
      }
    }
  });
}

INSTANTIATE_TEST_SUITE_P(PeCounts, Collectives, ::testing::Values(1, 2, 3, 4, 5, 8, 13));

}  // namespace
}  // namespace weft
