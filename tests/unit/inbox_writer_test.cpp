// When the proxy has a kernel store what nobody fetches from the inbox. Time is a number here.
#include "src/proxy/inbox_writer.hpp"

#include <weft/device/ring.hpp>

#include <gtest/gtest.h>

#include "tests/support/host_ring.hpp"
#include "tests/support/manual_gpu.hpp"

namespace weft::proxy {
namespace {

constexpr std::uint32_t kWakeUs = 20;
constexpr std::uint64_t kUs = 1000;
constexpr std::uint64_t kCapacity = 256;

class InboxWakes : public ::testing::Test {
 protected:
  void push() {
    device::Command command;
    command.kind = device::CommandKind::Signal;
    writer_.push(command, {}, {});
  }

  // A thread of the GPU applies everything.
  void apply() { apply_below(writer_.head()); }

  void apply_below(std::uint64_t position) {
    HostMemory::store_far(ring_.view().consumed(), position);
  }

  void poll(std::uint64_t us) {
    writer_.poll(us * kUs, [](const FetchRoute&, std::uint64_t) {});
  }

  test::HostRing ring_{kCapacity};
  test::CountingApplier applier_;
  InboxWriter writer_{ring_.view(), applier_, kWakeUs};
};

TEST_F(InboxWakes, TheApplierComesWhereNobodyServes) {
  poll(100);
  push();
  poll(101);
  poll(100 + kWakeUs - 1);
  EXPECT_EQ(applier_.wakes, 0);
  poll(100 + kWakeUs);
  EXPECT_EQ(applier_.wakes, 1);
  poll(100 + 2 * kWakeUs - 1);
  EXPECT_EQ(applier_.wakes, 1) << "it needs time to start";
}

TEST_F(InboxWakes, WhereItHadToComeLastTimeItComesAtOnce) {
  poll(100);
  push();
  poll(200);
  apply();
  poll(201);
  poll(300);
  push();
  poll(302);
  EXPECT_EQ(applier_.wakes, 2);
  poll(303);
  EXPECT_EQ(applier_.wakes, 2) << "once";
}

TEST_F(InboxWakes, AThreadThatServesAgainIsGivenTime) {
  poll(100);
  push();
  poll(200);
  apply();  // the applier
  poll(201);
  poll(300);
  push();
  apply();  // a thread that waits, before the applier is woken
  poll(300);
  poll(400);
  push();
  poll(402);
  EXPECT_EQ(applier_.wakes, 1);
  poll(400 + kWakeUs);
  EXPECT_EQ(applier_.wakes, 2);
}

// One thread of the GPU that waits by itself applies a few commands while hundreds arrive.
TEST_F(InboxWakes, TheApplierHelpsAThreadThatIsSlow) {
  poll(100);
  for (int i = 0; i < 200; ++i) {
    push();
  }
  for (std::uint64_t us = 1; us <= kWakeUs; ++us) {
    apply_below(us / 4);
    poll(100 + us);
  }
  EXPECT_EQ(applier_.wakes, 1);
}

TEST_F(InboxWakes, AWarpThatKeepsUpIsLeftAlone) {
  poll(100);
  for (int i = 0; i < 200; ++i) {
    push();
  }
  for (std::uint64_t us = 1; us <= 10 * kWakeUs; ++us) {
    for (int i = 0; i < 3; ++i) {
      push();
    }
    apply_below(3 * us);  // 200 are always left
    poll(100 + us);
  }
  EXPECT_EQ(applier_.wakes, 0);
}

TEST_F(InboxWakes, AThreadThatIsSlowWithFewCommandsIsLeftAlone) {
  poll(100);
  for (std::uint64_t us = 1; us <= 10 * kWakeUs; ++us) {
    if (us % 10 == 1) {
      push();
      push();
    }
    apply_below(writer_.head() - 1);
    poll(100 + us);
  }
  EXPECT_EQ(applier_.wakes, 0);
}

}  // namespace
}  // namespace weft::proxy
