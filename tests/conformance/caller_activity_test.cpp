// What the progress thread learns of the threads that call a transport: whether they poll, only post, or do nothing.
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
}

}  // namespace
}  // namespace weft::transport::rails
