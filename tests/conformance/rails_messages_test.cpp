// How many messages the rails transport sends for an operation: each costs both ends a wake-up
// where their cores are busy.
#include <gtest/gtest.h>

#include "tests/support/rails_pes.hpp"
#include "tests/support/simulated_network.hpp"

namespace weft::test {
namespace {

using namespace transport;
using rails::RailsTransport;

class RailsMessages : public ::testing::Test {
 protected:
  [[nodiscard]] Operation atomic(std::uint64_t* result) {
    return {
        .kind = OperationKind::Atomic,
        .peer = Pe(1),
        .remote = {RegionIndex(0), HeapOffset(64)},
        .bytes = 8,
        .update = {.code = AtomicCode::Add, .word = {RegionIndex(0), HeapOffset(64)}, .operand = 1},
        .result = result,
        .counter = &counter_};
  }

  void run(const Operation& operation) {
    ASSERT_EQ(pes_[0]->transport->post(operation), Status::Ok);
    pes_[0]->transport->flush(Pe(1));
    ASSERT_TRUE(progress_until(pes_, [&] { return counter_.is_idle(); }));
    // Whatever would follow is under way now.
    for (int i = 0; i < 1000; ++i) {
      progress_all(pes_);
    }
  }

  [[nodiscard]] std::uint64_t sent_by(std::size_t pe) const {
    return read_counter(pes_[pe]->counters[0].tx_operations);
  }

  SimulatedNetwork network_{1, {}};
  std::vector<std::unique_ptr<RailsPe>> pes_ = make_rails_pes(2, 4096, {}, [this](std::uint32_t) {
    RailsTransport::Rails rails;
    rails.push_back(network_.make_rail("nic0"));
    return rails;
  });
  OperationCounter counter_;
};

// The reply acknowledges it: nobody has to ask for that.
TEST_F(RailsMessages, AnAtomicWithAResultIsOneMessageEachWay) {
  std::uint64_t old = 7;
  for (std::uint64_t i = 0; i < 5; ++i) {
    run(atomic(&old));
    EXPECT_EQ(old, i);
    EXPECT_EQ(sent_by(0), i + 1);
    EXPECT_EQ(sent_by(1), i + 1);
  }
}

// One without a result is complete once its acknowledgement has been asked for and has come, also
// behind one with a result.
TEST_F(RailsMessages, AnAtomicWithoutAResultIsAcknowledgedOnRequest) {
  std::uint64_t old = 7;
  for (std::uint64_t i = 0; i < 5; ++i) {
    run(atomic(&old));
    run(atomic(nullptr));
    EXPECT_EQ(old, 2 * i);
  }
}

}  // namespace
}  // namespace weft::test
