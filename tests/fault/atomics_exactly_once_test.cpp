// Atomics are applied exactly once, whatever is sent again: the sum is exact.
#include <gtest/gtest.h>

#include <algorithm>
#include <random>

#include "tests/support/rails_pes.hpp"
#include "tests/support/simulated_network.hpp"

namespace weft::transport::rails {
namespace {

std::uint64_t run_additions(std::uint64_t seed,
                            std::uint64_t count,
                            bool fetching,
                            const RailsOptions& options = {}) {
  test::SimulatedNetwork network(seed, {.delay = 0.5, .refuse = 0.1});
  std::mt19937_64 random(seed);
  const auto pes = test::make_rails_pes(3, 4096, options, [&](std::uint32_t pe) {
    RailsTransport::Rails rails;
    for (int i = 0; i < 3; ++i) {
      rails.push_back(network.make_rail("pe" + std::to_string(pe) + "nic" + std::to_string(i)));
    }
    return rails;
  });
  OperationCounter counter;
  std::vector<std::uint64_t> old(count, ~std::uint64_t{0});
  for (std::uint64_t i = 0; i < count; ++i) {
    const Operation operation{.kind = OperationKind::Atomic,
                              .peer = Pe(2),
                              .update = {.code = AtomicCode::Add,
                                         .word = {RegionIndex(0), HeapOffset(128)},
                                         .operand = 1},
                              .result = fetching ? &old[i] : nullptr,
                              .counter = &counter};
    while (pes[i % 2]->transport->post(operation) == Status::Again) {
      test::progress_all(pes);
    }
    if (i % 300 == 0) {
      for (std::size_t rail = 0; rail < network.rail_count(); ++rail) {
        network.revive(rail);
      }
      network.kill(random() % network.rail_count());
    }
    test::progress_all(pes);
  }
  for (std::size_t rail = 0; rail < network.rail_count(); ++rail) {
    network.revive(rail);
  }
  EXPECT_TRUE(test::progress_until(pes,
                                   [&] {
                                     pes[0]->transport->flush(Pe(2));
                                     pes[1]->transport->flush(Pe(2));
                                     return counter.is_idle();
                                   }))
      << "seed " << seed;
  if (fetching) {
    std::ranges::sort(old);
    for (std::uint64_t i = 0; i < count; ++i) {
      EXPECT_EQ(old[i], i) << "each old value is seen once";
    }
  }
  return *pes[2]->word(128);
}

TEST(AtomicsExactlyOnce, SumIsExactWhileRailsDie) {
  for (std::uint64_t seed = 1; seed <= 10; ++seed) {
    EXPECT_EQ(run_additions(seed, 5000, false), 5000U) << "seed " << seed;
  }
}

TEST(AtomicsExactlyOnce, SumIsExactWhileRailsDieAndMessagesAreSigned) {
  for (std::uint64_t seed = 21; seed <= 24; ++seed) {
    EXPECT_EQ(run_additions(seed, 5000, false, {.secret = "of the job"}), 5000U) << "seed " << seed;
  }
}

TEST(AtomicsExactlyOnce, EveryOldValueIsFetchedOnceWhileRailsDie) {
  for (std::uint64_t seed = 11; seed <= 20; ++seed) {
    EXPECT_EQ(run_additions(seed, 3000, true), 3000U) << "seed " << seed;
  }
}

}  // namespace
}  // namespace weft::transport::rails
