// PEs as threads that pretend to be on nodes of their own, over four loopback addresses as rails:
// everything between nodes, through the real providers, without a NIC. And over emulated NICs where
// the suite runs on some (loom run -- multi_tests).
#include <gtest/gtest.h>

#include <algorithm>
#include <cstring>
#include <future>
#include <numeric>
#include <string>
#include <thread>
#include <vector>

#include "src/base/error.hpp"
#include "src/base/rail_policies.hpp"
#include "src/fabric/discovery.hpp"
#include "tests/support/thread_job.hpp"

namespace weft {
namespace {

using rma::Blocking;
using testing::run_pes;
using testing::test_config;

// The providers of libfabric 1.17 and 2.x that carry rails over plain TCP; absent ones are skipped.
class RailsLoopback : public ::testing::TestWithParam<std::string> {
 protected:
  [[nodiscard]] static Config config(std::string policy = "balanced") {
    Config config = test_config();
    config.node_size = 1;
    config.rail_policy = std::move(policy);
    config.nics_shared = true;
    if (GetParam() != testing::kEmulated) {
      config.nics = "127.0.0.1,127.0.0.2,127.0.0.3,127.0.0.4";
      config.provider = GetParam();
    }
    return config;
  }

  void SetUp() override {
    try {
      static_cast<void>(fabric::discover(config()));
    } catch (const Error& error) {
      GTEST_SKIP() << error.what();
    }
  }
};

std::byte pattern(std::uint32_t pe, std::size_t round, std::size_t at) {
  return static_cast<std::byte>(std::size_t{pe} * 37 + round * 11 + at * 3 + (at >> 8U));
}

TEST_P(RailsLoopback, PutAndGetMoveEveryByteOfEverySize) {
  run_pes(
      2,
      [](runtime::Runtime& runtime) {
        constexpr std::size_t kBytesMax = (1U << 20U) + 4097;
        auto* heap = static_cast<std::byte*>(runtime.heap().allocate(2 * kBytesMax, 64, true));
        const Pe peer(1 - runtime.pe().value);
        std::vector<std::byte> source(kBytesMax);
        std::size_t round = 0;
        for (const std::size_t bytes :
             {1UL, 7UL, 8UL, 64UL, 65UL, 4096UL, 16384UL, 16385UL, 65536UL, 300'001UL, kBytesMax}) {
          for (const Blocking blocking : {Blocking::Yes, Blocking::No}) {
            ++round;
            for (std::size_t i = 0; i < bytes; ++i) {
              source[i] = pattern(runtime.pe().value, round, i);
            }
            const heap::Place there = runtime.rma().place_of(heap, peer);
            ASSERT_EQ(runtime.rma().put(runtime.default_context(), there, {source.data(), bytes},
                                        peer, blocking),
                      Status::Ok);
            if (blocking == Blocking::Yes) {
              std::memset(source.data(), 0xEE, bytes);  // may be reused
            }
            ASSERT_EQ(runtime.collectives().barrier_all(runtime.default_context()), Status::Ok);
            std::vector<std::byte> back(bytes, std::byte{0xCC});
            ASSERT_EQ(
                runtime.rma().get(runtime.default_context(), back, there, peer, Blocking::Yes),
                Status::Ok);
            std::size_t wrong = 0;
            for (std::size_t i = 0; i < bytes; ++i) {
              wrong += heap[i] != pattern(peer.value, round, i) ||
                               back[i] != pattern(runtime.pe().value, round, i)
                           ? 1
                           : 0;
            }
            ASSERT_EQ(wrong, 0U) << bytes << " bytes";
            ASSERT_EQ(runtime.collectives().barrier_all(runtime.default_context()), Status::Ok);
          }
        }
      },
      config());
}

TEST_P(RailsLoopback, SignalsComeAfterTheirDataUnderEveryPolicy) {
  for (const Choice& policy : kRailPolicies) {
    run_pes(
        2,
        [](runtime::Runtime& runtime) {
          constexpr std::size_t kBytes = 200'000;
          auto* data = static_cast<std::byte*>(runtime.heap().allocate(kBytes, 64, true));
          auto* word = static_cast<std::uint64_t*>(runtime.heap().allocate(8, 64, true));
          const Pe peer(1 - runtime.pe().value);
          std::vector<std::byte> source(kBytes);
          for (std::uint64_t round = 1; round <= 40; ++round) {
            const std::size_t bytes = round % 3 == 0 ? kBytes : round % 3 == 1 ? 64 : 5000;
            for (std::size_t i = 0; i < bytes; ++i) {
              source[i] = pattern(runtime.pe().value, round, i);
            }
            ASSERT_EQ(runtime.rma().put_signal(
                          runtime.default_context(), runtime.rma().place_of(data, peer),
                          {source.data(), bytes},
                          {.word = runtime.rma().place_of(word, peer), .value = round}, peer,
                          Blocking::No),
                      Status::Ok);
            ASSERT_EQ(runtime.rma().waiter().wait([&] { return rma::load_word(word) >= round; },
                                                  [] { return "the signal"; }),
                      Status::Ok);
            for (std::size_t i = 0; i < bytes; ++i) {
              ASSERT_EQ(data[i], pattern(peer.value, round, i)) << "round " << round;
            }
            ASSERT_EQ(runtime.collectives().barrier_all(runtime.default_context()), Status::Ok);
          }
        },
        config(std::string(policy.name)));
  }
}

TEST_P(RailsLoopback, AtomicsOfAllPesAddUp) {
  constexpr std::uint64_t kRounds = 300;
  run_pes(
      3,
      [](runtime::Runtime& runtime) {
        auto* word = static_cast<std::uint64_t*>(runtime.heap().allocate(8, 64, true));
        for (std::uint64_t i = 0; i < kRounds; ++i) {
          std::uint64_t old = 0;
          const rma::Atomic add{.code = rma::AtomicCode::Add, .operand = 1};
          ASSERT_EQ(
              runtime.rma().atomic(runtime.default_context(), runtime.rma().place_of(word, Pe(0)),
                                   add, Pe(0), i % 4 == 0 ? &old : nullptr),
              Status::Ok);
        }
        ASSERT_EQ(runtime.collectives().barrier_all(runtime.default_context()), Status::Ok);
        if (runtime.pe() == Pe(0)) {
          EXPECT_EQ(rma::load_word(word), 3 * kRounds);
        }
      },
      config());
}

TEST_P(RailsLoopback, PeersThatComputeAreServedByTheirProgressThread) {
  std::promise<void> answered;  // not told through Weft, as PE 1 is to call nothing of it
  std::future<void> all_answered = answered.get_future();
  run_pes(
      2,
      [&](runtime::Runtime& runtime) {
        auto* word = static_cast<std::uint64_t*>(runtime.heap().allocate(8, 64, true));
        if (runtime.pe() == Pe(0)) {
          for (int i = 0; i < 20; ++i) {
            std::uint64_t old = 0;
            ASSERT_EQ(
                runtime.rma().atomic(runtime.default_context(), runtime.rma().place_of(word, Pe(1)),
                                     {.code = rma::AtomicCode::Add, .operand = 1}, Pe(1), &old),
                Status::Ok);
          }
          answered.set_value();
        } else {
          // Without the progress thread PE 0 would wait until PE 1 comes to the barrier.
          EXPECT_EQ(all_answered.wait_for(std::chrono::seconds(60)), std::future_status::ready);
          EXPECT_EQ(rma::load_word(word), 20U);
        }
        ASSERT_EQ(runtime.collectives().barrier_all(runtime.default_context()), Status::Ok);
      },
      config());
}

TEST_P(RailsLoopback, AlltoallMovesEveryBlock) {
  constexpr std::size_t kBytes = 30'000;
  run_pes(
      4,
      [](runtime::Runtime& runtime) {
        auto* source = static_cast<std::byte*>(runtime.heap().allocate(4 * kBytes, 64, true));
        auto* dest = static_cast<std::byte*>(runtime.heap().allocate(4 * kBytes, 64, true));
        for (std::size_t round = 0; round < 10; ++round) {
          for (std::size_t i = 0; i < 4 * kBytes; ++i) {
            source[i] = pattern(runtime.pe().value, round, i);
          }
          ASSERT_EQ(runtime.collectives().alltoall(runtime.collectives().world(),
                                                   {reinterpret_cast<std::byte*>(dest),
                                                    reinterpret_cast<const std::byte*>(source)},
                                                   kBytes),
                    Status::Ok);
          for (std::uint32_t from = 0; from < 4; ++from) {
            for (std::size_t i = 0; i < kBytes; ++i) {
              ASSERT_EQ(dest[from * kBytes + i],
                        pattern(from, round, runtime.pe().value * kBytes + i));
            }
          }
          ASSERT_EQ(runtime.collectives().barrier_all(runtime.default_context()), Status::Ok);
        }
      },
      config());
}

INSTANTIATE_TEST_SUITE_P(Providers,
                         RailsLoopback,
                         ::testing::Values("auto", "tcp;ofi_rxm", "net", "tcp"),
                         [](const auto& parameter) {
                           std::string name = parameter.param;
                           std::ranges::replace(name, ';', '_');
                           return name;
                         });

INSTANTIATE_TEST_SUITE_P(Emulated, RailsLoopback, ::testing::ValuesIn(testing::emulated_only()));

}  // namespace
}  // namespace weft
