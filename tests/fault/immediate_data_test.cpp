// Immediate data that no queue protects: many senders never send more than a target's queues hold,
// also while the target is not scheduled. And NICs that use up a receive for each piece of it.
#include <gtest/gtest.h>

#include "tests/support/rails_pes.hpp"
#include "tests/support/simulated_network.hpp"

namespace weft::transport::rails {
namespace {

constexpr std::uint64_t kSignalAt = 64;
constexpr std::uint64_t kDataAt = 4096;
constexpr std::size_t kBytes = 2048;  // more than an eager message

class Flood {
 public:
  Flood(std::uint32_t senders, std::uint32_t rails, test::NetworkFaults faults)
      : network_(5, faults),
        pes_(test::make_rails_pes(senders + 1,
                                  kDataAt + kBytes,
                                  {},
                                  [&](std::uint32_t) {
                                    RailsTransport::Rails made;
                                    for (std::uint32_t i = 0; i < rails; ++i) {
                                      made.push_back(network_.make_rail("nic"));
                                    }
                                    return made;
                                  })),
        counters_(senders + 1),
        source_(kBytes, std::byte{7}) {}

  // Each sender posts as many put_signals to PE 0 as it may; the target does nothing meanwhile.
  void post_while_the_target_sleeps(std::uint64_t signals) {
    for (std::uint64_t i = 0; i < signals; ++i) {
      for (std::uint32_t pe = 1; pe < pes_.size(); ++pe) {
        if (post(pe) == Status::Ok) {
          ++posted_;
        }
        pes_[pe]->transport->progress();
      }
    }
  }

  // All signals have arrived, and each sender knows.
  [[nodiscard]] bool finish() {
    for (std::uint32_t pe = 1; pe < pes_.size(); ++pe) {
      pes_[pe]->transport->flush(Pe(0));
    }
    const auto is_idle = [](OperationCounter& counter) { return counter.is_idle(); };
    return test::progress_until(
               pes_, [&] { return std::ranges::all_of(counters_, is_idle); }, 400'000) &&
           *pes_[0]->word(kSignalAt) == posted_;
  }

  [[nodiscard]] std::uint64_t posted() const { return posted_; }

  [[nodiscard]] test::SimulatedNetwork& network() { return network_; }

  [[nodiscard]] const std::vector<std::unique_ptr<test::RailsPe>>& pes() const { return pes_; }

 private:
  Status post(std::uint32_t pe) {
    return pes_[pe]->transport->post({.kind = OperationKind::PutSignal,
                                      .peer = Pe(0),
                                      .remote = {RegionIndex(0), HeapOffset(kDataAt)},
                                      .local = source_.data(),
                                      .bytes = source_.size(),
                                      .update = {.code = AtomicCode::Add,
                                                 .word = {RegionIndex(0), HeapOffset(kSignalAt)},
                                                 .operand = 1},
                                      .counter = &counters_[pe]});
  }

  test::SimulatedNetwork network_;
  std::vector<std::unique_ptr<test::RailsPe>> pes_;
  std::vector<OperationCounter> counters_;
  std::vector<std::byte> source_;
  std::uint64_t posted_ = 0;
};

TEST(ImmediateData, OfManySendersNeverOverrunsATargetThatIsNotScheduled) {
  for (const std::uint32_t senders : {1U, 3U, 9U}) {
    for (const std::uint32_t rails : {1U, 3U}) {
      Flood flood(senders, rails, {.immediates_max = 90});
      for (int round = 0; round < 3; ++round) {
        flood.post_while_the_target_sleeps(400);
        EXPECT_EQ(flood.network().overruns(), 0U) << senders << " senders, " << rails << " rails";
        EXPECT_TRUE(flood.finish()) << flood.posted() << " signals";
      }
      EXPECT_GT(flood.network().immediates_high(), 90U / senders / 4) << "they are used at all";
    }
  }
}

// More senders than entries: nobody may send any.
TEST(ImmediateData, IsLeftOutWhereTheTargetHasLessRoomThanSenders) {
  Flood flood(5, 2, {.immediates_max = 4});
  flood.post_while_the_target_sleeps(100);
  EXPECT_TRUE(flood.finish());
  EXPECT_EQ(flood.network().immediates_high(), 0U);
}

TEST(ImmediateData, HasNoLimitWhereTheProviderProtectsTheQueue) {
  Flood flood(2, 1, {});
  flood.post_while_the_target_sleeps(1000);
  EXPECT_GT(flood.network().immediates_high(), 900U);
  EXPECT_TRUE(flood.finish());
}

TEST(ImmediateData, ThatUsesUpReceivesLeavesNoRailDeaf) {
  Flood flood(2, 2, {.immediates_use_receives = true});
  for (int round = 0; round < 5; ++round) {
    flood.post_while_the_target_sleeps(200);
    EXPECT_TRUE(flood.finish()) << "round " << round;
  }
}

}  // namespace
}  // namespace weft::transport::rails
