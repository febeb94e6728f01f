// Memory for local use, as EFA and verbs want it registered (FI_MR_LOCAL): loopback's provider does not
// want it, so the rail is told to do as if.
#include <gtest/gtest.h>

#include <algorithm>
#include <array>
#include <vector>

#include "src/base/config.hpp"
#include "src/fabric/discovery.hpp"
#include "src/fabric/libfabric_rail.hpp"

namespace weft::fabric {
namespace {

NicInfo loopback_nic() {
  Config config = load_config([](std::string_view) { return std::nullopt; });
  config.nics = "127.0.0.1";
  for (const NicInfo& nic : discover(config)) {
    if (nic.address == "127.0.0.1") {
      return nic;
    }
  }
  return {};
}

class LocalMemoryTest : public ::testing::Test {
 protected:
  void SetUp() override {
    region_ = target_.add_region(target_memory_);
    peer_ = writer_.add_peer(target_.address());
  }

  [[nodiscard]] RemoteMemory there() const { return {peer_, region_.base, region_.key}; }

  // Polls both sides until an event of the writer comes.
  Event next_event() {
    std::array<Event, 8> events;
    for (;;) {
      target_.poll(events);
      if (writer_.poll(events) > 0) {
        return events[0];
      }
    }
  }

  LibfabricRail writer_{loopback_nic(), true};
  LibfabricRail target_{loopback_nic(), true};
  std::vector<std::byte> target_memory_ = std::vector<std::byte>(1U << 20U);
  std::vector<std::byte> unknown_ = std::vector<std::byte>(1U << 20U, std::byte{7});
  RegionKey region_;
  PeerHandle peer_;
  PostContext context_;
};

TEST_F(LocalMemoryTest, UnknownMemoryIsRegisteredForTheOperationOnly) {
  const LocalMemory here{unknown_.data(), unknown_.size()};
  while (writer_.post_write(here, there(), std::nullopt, &context_) == PostResult::Full) {
    std::array<Event, 8> events;
    writer_.poll(events);
    target_.poll(events);
  }
  EXPECT_EQ(writer_.operation_registrations(), 1U);
  EXPECT_EQ(next_event().kind, EventKind::Completed);
  EXPECT_EQ(writer_.operation_registrations(), 0U);
  EXPECT_EQ(target_memory_, unknown_);

  std::ranges::fill(target_memory_, std::byte{9});
  ASSERT_EQ(writer_.post_read(here, there(), &context_), PostResult::Posted);
  EXPECT_EQ(writer_.operation_registrations(), 1U);
  EXPECT_EQ(next_event().kind, EventKind::Completed);
  EXPECT_EQ(writer_.operation_registrations(), 0U);
  EXPECT_EQ(target_memory_, unknown_);
}

TEST_F(LocalMemoryTest, KeptMemoryNeedsNoRegistrationOfItsOwn) {
  writer_.keep_registered(unknown_);
  const LocalMemory inside{unknown_.data() + 4096, 65536};
  while (writer_.post_write(inside, there(), std::nullopt, &context_) == PostResult::Full) {
    std::array<Event, 8> events;
    writer_.poll(events);
    target_.poll(events);
  }
  EXPECT_EQ(writer_.operation_registrations(), 0U);
  EXPECT_EQ(next_event().kind, EventKind::Completed);
  EXPECT_TRUE(std::ranges::equal(std::span(target_memory_).first(65536),
                                 std::span(unknown_).subspan(4096, 65536)));
}

TEST_F(LocalMemoryTest, MemoryThatReachesBeyondARegionIsNotTakenForIt) {
  writer_.keep_registered(std::span(unknown_).first(4096));
  const LocalMemory across{unknown_.data(), 65536};
  while (writer_.post_write(across, there(), std::nullopt, &context_) == PostResult::Full) {
    std::array<Event, 8> events;
    writer_.poll(events);
    target_.poll(events);
  }
  EXPECT_EQ(writer_.operation_registrations(), 1U);
  EXPECT_EQ(next_event().kind, EventKind::Completed);
}

}  // namespace
}  // namespace weft::fabric
