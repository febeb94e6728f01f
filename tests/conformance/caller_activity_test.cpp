// What the progress thread learns of the threads that call a transport: whether they poll, only
// post, post and poll, or do nothing.
#include <gtest/gtest.h>

#include "tests/support/rails_pes.hpp"
#include "tests/support/simulated_network.hpp"

namespace weft::transport::rails {
namespace {

TEST(CallerActivity, IsWhatCallersHaveDoneSinceTheLastLook) {
  constexpr std::size_t kDataAt = 4096;
  test::SimulatedNetwork network(1, {});
  const auto pes = test::make_rails_pes(2, 2 * kDataAt, {}, [&](std::uint32_t) {
    RailsTransport::Rails rails;
    rails.push_back(network.make_rail("nic"));
    return rails;
  });
  RailsTransport& transport = *pes[0]->transport;
  static_cast<void>(transport.caller_activity());  // of the set-up
  EXPECT_EQ(transport.caller_activity(), CallerActivity::None);

  OperationCounter counter;
  const std::uint64_t source = 1;
  const Operation put{.kind = OperationKind::Put,
                      .copy_source = true,
                      .peer = Pe(1),
                      .remote = {RegionIndex(0), HeapOffset(kDataAt)},
                      .local = const_cast<std::uint64_t*>(&source),
                      .bytes = sizeof(source),
                      .counter = &counter};
  ASSERT_EQ(transport.post(put), Status::Ok);
  EXPECT_EQ(transport.caller_activity(), CallerActivity::Posts);
  static_cast<void>(transport.advance());  // the progress thread's own
  EXPECT_EQ(transport.caller_activity(), CallerActivity::None);

  ASSERT_EQ(transport.post(put), Status::Ok);
  static_cast<void>(transport.progress());
  EXPECT_EQ(transport.caller_activity(), CallerActivity::Polls);
  EXPECT_TRUE(test::progress_until(pes, [&] { return counter.is_idle(); }));
  static_cast<void>(transport.caller_activity());

  // A caller that goes on posting small operations makes progress itself from time to time.
  const Operation add{.kind = OperationKind::Atomic,
                      .peer = Pe(1),
                      .update = {.code = AtomicCode::Add,
                                 .word = {RegionIndex(0), HeapOffset(kDataAt)},
                                 .operand = 1},
                      .counter = &counter};
  int passes = 0;
  for (int i = 0; i < 1000; ++i) {
    ASSERT_EQ(transport.post(add), Status::Ok);
    const CallerActivity activity = transport.caller_activity();
    ASSERT_TRUE(activity == CallerActivity::Posts || activity == CallerActivity::PostsAndPolls);
    passes += activity == CallerActivity::PostsAndPolls ? 1 : 0;
    if (i % 100 == 99) {
      transport.flush(Pe(1));
      ASSERT_TRUE(test::progress_until(pes, [&] { return counter.is_idle(); }));
      static_cast<void>(transport.caller_activity());
    }
  }
  EXPECT_GE(passes, 10);
  EXPECT_LE(passes, 100);
}

}  // namespace
}  // namespace weft::transport::rails
