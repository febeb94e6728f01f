// A NIC that has no room for a receive buffer gets it later: none is forgotten, and no rail becomes
// deaf.
#include <gtest/gtest.h>

#include "src/transport/faulty/faulty_rail.hpp"
#include "tests/support/rails_pes.hpp"
#include "tests/support/simulated_network.hpp"

namespace weft::transport::rails {
namespace {

// Far more messages than there are buffers, each of which is refused now and then.
std::uint64_t count_messages(const test::NetworkFaults& faults, const char* rail_faults) {
  constexpr std::uint64_t kMessages = 1000;
  test::SimulatedNetwork network(1, faults);
  const auto plan = faulty::parse_faults(rail_faults);
  const auto pes = test::make_rails_pes(2, 4096, {}, [&](std::uint32_t pe) {
    RailsTransport::Rails rails;
    rails.push_back(network.make_rail("nic"));
    if (plan.is_active()) {
      rails[0] = std::make_unique<faulty::FaultyRail>(std::move(rails[0]), plan, pe);
    }
    return rails;
  });
  OperationCounter counter;
  for (std::uint64_t i = 0; i < kMessages; ++i) {
    std::uint64_t old = 0;
    EXPECT_EQ(pes[0]->transport->post({.kind = OperationKind::Atomic,
                                       .peer = Pe(1),
                                       .update = {.code = AtomicCode::Add,
                                                  .word = {RegionIndex(0), HeapOffset(128)},
                                                  .operand = 1},
                                       .result = &old,
                                       .counter = &counter}),
              Status::Ok);
    if (!test::progress_until(pes, [&] { return counter.is_idle(); }, 200'000)) {
      ADD_FAILURE() << "deaf after " << i << " messages";
      return i;
    }
  }
  return *pes[1]->word(128);
}

TEST(ReceiveBuffers, ThatTheNicRefusesArePostedAgain) {
  EXPECT_EQ(count_messages({.refuse_receives = 0.5}, ""), 1000U);
}

TEST(ReceiveBuffers, ThatAFaultyRailRefusesArePostedAgain) {
  EXPECT_EQ(count_messages({}, "seed=4,refuse=0.4"), 1000U);
}

}  // namespace
}  // namespace weft::transport::rails
