// Memory for local use, as EFA and verbs want it registered (FI_MR_LOCAL): loopback's provider does
// not want it, so the rail is told to do as if.
#include <gtest/gtest.h>

#include <algorithm>
#include <array>
#include <vector>

#include "src/base/config.hpp"
#include "src/fabric/discovery.hpp"
#include "src/fabric/libfabric_rail.hpp"
#include "tests/support/rails_pes.hpp"

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
    region = target.add_region(target_memory);
    peer = writer.add_peer(target.address());
  }

  [[nodiscard]] RemoteMemory there() const { return {peer, region.base, region.key}; }

  // Makes progress on both sides; true if an event of the writer came, which is then in `events`.
  bool poll() {
    target.poll(events);
    return writer.poll(events) > 0;
  }

  // The connection is opened by the first post: until then there is no room.
  void write(const LocalMemory& here) {
    while (writer.post_write(here, there(), std::nullopt, &context) == PostResult::Full) {
      poll();
    }
  }

  Event next_event() {
    while (!poll()) {
    }
    return events[0];
  }

  LibfabricRail writer{loopback_nic(), {.registers_all = true}};
  LibfabricRail target{loopback_nic(), {.registers_all = true}};
  std::vector<std::byte> target_memory = std::vector<std::byte>(1U << 20U);
  std::vector<std::byte> unknown = std::vector<std::byte>(1U << 20U, std::byte{7});
  RegionKey region;
  PeerHandle peer;
  PostContext context;
  std::array<Event, 8> events;
};

TEST_F(LocalMemoryTest, UnknownMemoryIsRegisteredForTheOperationOnly) {
  const LocalMemory here{unknown.data(), unknown.size()};
  write(here);
  EXPECT_EQ(writer.operation_registrations(), 1U);
  EXPECT_EQ(next_event().kind, EventKind::Completed);
  EXPECT_EQ(writer.operation_registrations(), 0U);
  EXPECT_EQ(target_memory, unknown);

  std::ranges::fill(target_memory, std::byte{9});
  ASSERT_EQ(writer.post_read(here, there(), &context), PostResult::Posted);
  EXPECT_EQ(writer.operation_registrations(), 1U);
  EXPECT_EQ(next_event().kind, EventKind::Completed);
  EXPECT_EQ(writer.operation_registrations(), 0U);
  EXPECT_EQ(target_memory, unknown);
}

TEST_F(LocalMemoryTest, WhatIsInjectedNeedsNoRegistration) {
  ASSERT_GE(writer.limits().inject_write_bytes, 8U);
  const LocalMemory here{unknown.data(), 8};
  write(here);
  EXPECT_EQ(writer.operation_registrations(), 0U);
  EXPECT_EQ(next_event().kind, EventKind::Completed);
  EXPECT_EQ(target_memory[7], unknown[7]);
}

TEST_F(LocalMemoryTest, KeptMemoryNeedsNoRegistrationOfItsOwn) {
  writer.keep_registered(unknown);
  const LocalMemory inside{unknown.data() + 4096, 65536};
  write(inside);
  EXPECT_EQ(writer.operation_registrations(), 0U);
  EXPECT_EQ(next_event().kind, EventKind::Completed);
  EXPECT_TRUE(std::ranges::equal(std::span(target_memory).first(65536),
                                 std::span(unknown).subspan(4096, 65536)));
}

// A window that went, and other memory at its address: the NIC must not send the old pages.
TEST_F(LocalMemoryTest, OtherMemoryWhereARegionWasIsRegisteredAnew) {
  static_cast<void>(writer.add_region(unknown));
  const LocalMemory here{unknown.data(), unknown.size()};
  write(here);
  EXPECT_EQ(writer.operation_registrations(), 0U) << "as a part of the region";
  EXPECT_EQ(next_event().kind, EventKind::Completed);

  writer.drop_region(unknown);
  std::ranges::fill(unknown, std::byte{8});
  write(here);
  EXPECT_EQ(writer.operation_registrations(), 1U);
  EXPECT_EQ(next_event().kind, EventKind::Completed);
  EXPECT_EQ(target_memory, unknown);

  static_cast<void>(writer.add_region(unknown));
  write(here);
  EXPECT_EQ(writer.operation_registrations(), 0U);
  EXPECT_EQ(next_event().kind, EventKind::Completed);
}

TEST_F(LocalMemoryTest, AKeyOfARegionThatWentIsRefused) {
  write({unknown.data(), 4096});
  EXPECT_EQ(next_event().kind, EventKind::Completed);
  target.drop_region(target_memory);
  std::ranges::fill(target_memory, std::byte{3});
  write({unknown.data(), 4096});
  EXPECT_EQ(next_event().kind, EventKind::Failed);
  EXPECT_EQ(target_memory, std::vector<std::byte>(target_memory.size(), std::byte{3}));
}

TEST_F(LocalMemoryTest, MemoryThatReachesBeyondARegionIsNotTakenForIt) {
  writer.keep_registered(std::span(unknown).first(4096));
  const LocalMemory across{unknown.data(), 65536};
  write(across);
  EXPECT_EQ(writer.operation_registrations(), 1U);
  EXPECT_EQ(next_event().kind, EventKind::Completed);
}

// What PE 0 registers for operations, at most, while one put of unregistered memory is on its way.
std::size_t registrations_for(std::size_t bytes, bool copy_source) {
  const auto pes = test::make_rails_pes(2, 1U << 20U, {}, [](std::uint32_t) {
    transport::rails::RailsTransport::Rails rails;
    rails.push_back(open_rail(loopback_nic(), {.registers_all = true}));
    return rails;
  });
  std::vector<std::byte> source(bytes, std::byte{6});
  transport::OperationCounter counter;
  EXPECT_EQ(pes[0]->transport->post({.kind = transport::OperationKind::Put,
                                     .copy_source = copy_source,
                                     .peer = Pe(1),
                                     .remote = {RegionIndex(0), HeapOffset(4096)},
                                     .local = source.data(),
                                     .bytes = bytes,
                                     .update = {},
                                     .counter = &counter}),
            Status::Ok);
  const auto& rail =
      static_cast<const LibfabricRail&>(pes[0]->transport->rail(RailIndex(0)));  // NOLINT
  std::size_t most = 0;
  EXPECT_TRUE(test::progress_until(pes, [&] {
    most = std::max(most, rail.operation_registrations());
    return counter.is_idle();
  }));
  EXPECT_EQ(pes[1]->memory[4096 + bytes - 1], std::byte{6});
  return most;
}

TEST(LocalMemory, ACopiedSourceCostsNoRegistration) {
  EXPECT_EQ(registrations_for(300'000, true), 0U);
}

TEST(LocalMemory, ASmallSourceIsCopiedAndALargeOneRegisteredForItsOperation) {
  EXPECT_EQ(registrations_for(16'000, false), 0U);
  EXPECT_EQ(registrations_for(300'000, false), 1U);
}

}  // namespace
}  // namespace weft::fabric
