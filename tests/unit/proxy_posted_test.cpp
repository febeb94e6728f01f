// What was posted to a ring before a moment, while a GPU goes on posting: the proxy's part is
// played by the test.
#include <gtest/gtest.h>

#include <cstdint>

#include "src/proxy/command_consumer.hpp"
#include "src/proxy/posted.hpp"
#include "tests/support/host_ring.hpp"

namespace weft::proxy {
namespace {

constexpr std::uint64_t kCapacity = 8;

class Posted : public ::testing::Test {
 protected:
  std::uint64_t post() {
    const std::uint64_t position = producer_.claim();
    producer_.publish(position, {.kind = device::CommandKind::Nop});
    return position;
  }

  // Takes and completes up to `count`.
  void serve(int count) {
    device::Command command;
    for (int i = 0; i < count && consumer_.peek(command); ++i) {
      EXPECT_TRUE(consumer_.finish(consumer_.position(), false, 0));
      consumer_.take();
    }
    consumer_.publish();
  }

  test::HostRing ring_{kCapacity};
  device::RingProducer<HostMemory> producer_{ring_.view()};
  CommandConsumer consumer_{ring_.view(), 64};
};

TEST_F(Posted, AnIdleRingIsComplete) {
  EXPECT_TRUE(is_complete_below(ring_.view(), posted_below(ring_.view())));
  for (int i = 0; i < 20; ++i) {
    post();
    serve(1);
    EXPECT_EQ(posted_below(ring_.view()), static_cast<std::uint64_t>(i) + 1);
    EXPECT_TRUE(is_complete_below(ring_.view(), posted_below(ring_.view())));
  }
}

TEST_F(Posted, WhatIsPostedLaterIsNotWaitedFor) {
  for (int lap = 0; lap < 5; ++lap) {
    post();
    const std::uint64_t below = post() + 1;
    EXPECT_EQ(posted_below(ring_.view()), below);
    for (int i = 0; i < 4; ++i) {
      post();
    }
    serve(1);
    EXPECT_FALSE(is_complete_below(ring_.view(), below));
    serve(1);
    EXPECT_TRUE(is_complete_below(ring_.view(), below)) << "though four more are there";
    serve(4);
  }
}

// A thread of the GPU has claimed a slot and fills it later: what others posted behind it counts.
TEST_F(Posted, CommandsBehindAHoleCount) {
  const std::uint64_t hole = producer_.claim();
  const std::uint64_t behind = post();
  const std::uint64_t below = posted_below(ring_.view());
  EXPECT_EQ(below, behind + 1);
  serve(2);
  EXPECT_FALSE(is_complete_below(ring_.view(), below));
  producer_.publish(hole, {.kind = device::CommandKind::Nop});
  serve(2);
  EXPECT_TRUE(is_complete_below(ring_.view(), below));
}

TEST_F(Posted, AFullRingIsCountedWhole) {
  for (std::uint64_t i = 0; i < 3; ++i) {
    post();
  }
  serve(3);
  for (std::uint64_t i = 0; i < kCapacity; ++i) {
    post();
  }
  EXPECT_EQ(posted_below(ring_.view()), 3 + kCapacity);
}

}  // namespace
}  // namespace weft::proxy
