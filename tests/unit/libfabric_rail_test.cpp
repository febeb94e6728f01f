// What a rail does with providers that behave as those of EFA, Slingshot and Omni-Path: the order
// in which objects are closed, regions of GPU memory, queues that fail, operations that are read
// late.
#include "src/fabric/libfabric_rail.hpp"

#include <gtest/gtest.h>

#include <algorithm>
#include <array>
#include <numeric>
#include <vector>

#include <gmock/gmock.h>

#include "src/base/error.hpp"
#include "tests/support/fake_provider.hpp"

namespace weft::fabric {
namespace {

using ::testing::Contains;
using ::testing::HasSubstr;
using ::testing::Not;

std::vector<std::byte> numbered(std::size_t count) {
  std::vector<std::byte> bytes(count);
  for (std::size_t i = 0; i < count; ++i) {
    bytes[i] = static_cast<std::byte>(i * 131 + i / 256);
  }
  return bytes;
}

Event next_event(Rail& rail) {
  std::array<Event, 1> events;
  EXPECT_EQ(rail.poll(events), 1U);
  return events[0];
}

TEST(ClosingARail, RegionsThatAreBoundToTheEndpointGoFirst) {
  test::FakeProvider provider;
  provider.mr_mode = FI_MR_ENDPOINT | FI_MR_ALLOCATED | FI_MR_PROV_KEY;
  std::vector<std::byte> memory(4096);
  open_rail(provider.nic())->add_region(memory);
  EXPECT_EQ(provider.times_of("busy"), 0U);
  EXPECT_LT(provider.place_of("~region"), provider.place_of("~endpoint"));
  for (const char* call : {"~endpoint", "~queue", "~vector", "~domain", "~fabric"}) {
    EXPECT_EQ(provider.times_of(call), 1U) << call;
  }
}

// The provider may use them until then: fi_endpoint(3), "receive buffers".
TEST(ClosingARail, TheEndpointGoesBeforeTheRegistrationsOfPostedReceives) {
  test::FakeProvider provider;
  provider.mr_mode |= FI_MR_LOCAL;
  std::vector<std::byte> buffer(4096);
  PostContext context;
  {
    const auto rail = open_rail(provider.nic());
    EXPECT_EQ(rail->post_receive({buffer.data(), buffer.size()}, &context), PostResult::Posted);
    EXPECT_EQ(provider.times_of("region"), 1U);
  }
  EXPECT_LT(provider.place_of("~endpoint"), provider.place_of("~region"));
  EXPECT_LT(provider.place_of("~region"), provider.place_of("~domain"));
}

TEST(ClosingARail, WhatCannotBeClosedIsReportedOnce) {
  test::FakeProvider provider;
  provider.endpoint_error = FI_EBUSY;
  testing::internal::CaptureStderr();
  open_rail(provider.nic()).reset();
  open_rail(provider.nic()).reset();
  const std::string said = testing::internal::GetCapturedStderr();
  EXPECT_THAT(said, HasSubstr("fi_close of an endpoint failed: Device or resource busy"));
  EXPECT_EQ(said.find("fi_close"), said.rfind("fi_close"));
}

class GpuRegion : public testing::Test {
 protected:
  // A window of 4 KiB that begins 512 bytes behind the start of its page, as an array of a
  // framework does.
  GpuRegion() : pages_(numbered(3 * 4096)) { provider_.behind[7] = pages_; }

  [[nodiscard]] DeviceMemory window() {
    return {.memory = std::span(pages_).subspan(kOffset, 4096),
            .dma_buf = 7,
            .dma_buf_offset = kOffset};
  }

  static constexpr std::size_t kOffset = 512;
  test::FakeProvider provider_;
  std::vector<std::byte> pages_;
};

TEST_F(GpuRegion, OfADmaBufIsReadFromItsFirstByteWhereverThatIs) {
  const auto rail = open_rail(provider_.nic());
  const DeviceRegion region = rail->add_device_region(window());
  ASSERT_EQ(region.way, DeviceWay::DmaBuf) << region.why;
  std::vector<std::byte> read(4096);
  PostContext context;
  ASSERT_EQ(rail->post_read({read.data(), read.size()},
                            {PeerHandle(0), region.key.base, region.key.key}, &context),
            PostResult::Posted);
  EXPECT_EQ(next_event(*rail).kind, EventKind::Completed);
  EXPECT_TRUE(std::ranges::equal(read, window().memory));
}

TEST_F(GpuRegion, IsNotOfferedAsADmaBufToAProviderThatMisreadsIt) {
  provider_.name = "cxi";
  provider_.misreads_dma_buf = true;
  const DeviceRegion region = open_rail(provider_.nic())->add_device_region(window());
  EXPECT_EQ(region.way, DeviceWay::Interface);
  EXPECT_THAT(region.why, HasSubstr("provider cxi makes it itself"));
  EXPECT_EQ(provider_.dma_bufs, 0U);
}

TEST_F(GpuRegion, IsNotOfferedUnlessTheNicReachesIt) {
  provider_.misreads_dma_buf = true;
  const auto rail = open_rail(provider_.nic());
  const DeviceRegion region = rail->add_device_region(window());
  EXPECT_EQ(region.way, DeviceWay::Interface) << "the other way works";
  EXPECT_THAT(region.why, HasSubstr("a peer's NIC would not reach it: Invalid argument"));
  provider_.interface_error = FI_ENOSYS;
  const DeviceRegion none = rail->add_device_region(window());
  EXPECT_EQ(none.way, DeviceWay::None);
  EXPECT_THAT(none.why, HasSubstr("fi_mr_regattr failed"));
}

TEST_F(GpuRegion, IsProvedWithoutLosingWhatArrivesMeanwhile) {
  const auto rail = open_rail(provider_.nic());
  provider_.deliver({.flags = FI_RMA | FI_REMOTE_WRITE | FI_REMOTE_CQ_DATA, .data = 41});
  provider_.deliver({.flags = FI_RMA | FI_REMOTE_WRITE | FI_REMOTE_CQ_DATA, .data = 42});
  const std::vector<std::byte> before = pages_;
  ASSERT_NE(rail->add_device_region(window()).way, DeviceWay::None);
  EXPECT_EQ(pages_, before) << "a program may use it";
  EXPECT_FALSE(rail->may_sleep());
  EXPECT_EQ(next_event(*rail).immediate, 41U);
  EXPECT_EQ(next_event(*rail).immediate, 42U);
  EXPECT_TRUE(rail->may_sleep());
}

// Slingshot's provider up to 2.2, without gdrcopy.
TEST_F(GpuRegion, IsNotOfferedToAProviderThatCopiesSmallWritesWithCuda) {
  provider_.name = "cxi";
  provider_.option_errors = {{FI_OPT_FI_HMEM_P2P, FI_ENOPROTOOPT}, {10, FI_EOPNOTSUPP}};
  DeviceMemory memory = window();
  memory.gpu = 0;
  const DeviceRegion region = open_rail(provider_.nic())->add_device_region(memory);
  EXPECT_EQ(region.way, DeviceWay::None);
  EXPECT_THAT(region.why, HasSubstr("copies small writes with CUDA calls"));
  EXPECT_THAT(region.why, HasSubstr("2.3 or later, or gdrcopy"));
  provider_.option_errors.erase(10);
  EXPECT_EQ(open_rail(provider_.nic())->add_device_region(memory).way, DeviceWay::Interface);
}

TEST(AQueueThatFails, EndsTheRailAndSaysSo) {
  test::FakeProvider provider;
  const auto rail = open_rail(provider.nic());
  EXPECT_EQ(rail->examine({}, 0), LinkHealth::Unknown);
  provider.queue_code = -FI_EOVERRUN;
  testing::internal::CaptureStderr();
  const Event event = next_event(*rail);
  EXPECT_THAT(testing::internal::GetCapturedStderr(),
              HasSubstr("fake0 (fake0, nobody's): its completion queue has failed"));
  EXPECT_EQ(event.kind, EventKind::Failed);
  EXPECT_EQ(event.error, FI_EOVERRUN);
  std::array<Event, 4> events;
  EXPECT_EQ(rail->poll(events), 0U) << "it is said once";
  EXPECT_EQ(rail->examine({}, 0), LinkHealth::NicDown);
  EXPECT_THAT(provider.calls, Contains("~endpoint")) << "nothing arrives late";
  EXPECT_TRUE(rail->cut({}));
  std::vector<std::byte> memory(8);
  PostContext context;
  EXPECT_EQ(rail->post_write({memory.data(), 8}, {}, std::nullopt, &context), PostResult::Failed);
  EXPECT_EQ(rail->last_error(), FI_EOVERRUN);
  EXPECT_EQ(rail->post_receive({memory.data(), 8}, &context), PostResult::Full);
}

TEST(AQueueThatFails, IsNotOneThatIsEmptyOrInterrupted) {
  test::FakeProvider provider;
  const auto rail = open_rail(provider.nic());
  std::array<Event, 4> events;
  for (const ssize_t code : {-FI_EAGAIN, -FI_EINTR}) {
    provider.queue_code = code;
    EXPECT_EQ(rail->poll(events), 0U);
  }
  EXPECT_EQ(rail->examine({}, 0), LinkHealth::Unknown);
}

TEST(AFailedOperation, HasTheProvidersOwnWords) {
  test::FakeProvider provider;
  provider.name = "efa";
  provider.operation_error = FI_ECONNABORTED;
  provider.provider_error = 13;
  const auto rail = open_rail(provider.nic());
  std::vector<std::byte> memory(64);
  PostContext context;
  const RegionKey key = rail->add_region(memory);
  ASSERT_EQ(rail->post_write({memory.data(), 64}, {PeerHandle(0), key.base, key.key}, std::nullopt,
                             &context),
            PostResult::Posted);
  const Event event = next_event(*rail);
  EXPECT_EQ(event.kind, EventKind::Failed);
  EXPECT_EQ(event.context, &context);
  EXPECT_THAT(rail->words_of(event), HasSubstr("(efa 13: the peer does not respond)"));
  EXPECT_THAT(rail->words_of({.kind = EventKind::Failed, .error = FI_ECONNABORTED}),
              Not(HasSubstr("efa")));
}

// Omni-Path's provider reads what describes an operation when it carries it out.
TEST(WhatDescribesAnOperation, LivesUntilItIsCompleteWhereTheProviderReadsItLate) {
  test::FakeProvider provider;
  provider.mode = FI_ASYNC_IOV;
  LibfabricRail rail(provider.nic());
  std::vector<std::byte> memory = numbered(4096);
  const RegionKey key = rail.add_region(memory);
  std::array<PostContext, 4> contexts;
  for (std::size_t i = 0; i < contexts.size(); ++i) {
    const RemoteMemory there{PeerHandle(0), key.base + 2048 + 64 * i, key.key};
    ASSERT_EQ(rail.post_write({memory.data() + 64 * i, 64}, there, std::nullopt, &contexts[i]),
              PostResult::Posted);
  }
  EXPECT_EQ(rail.kept_descriptions(), contexts.size());
  std::array<Event, 4> events;
  EXPECT_EQ(rail.poll(events), contexts.size());
  EXPECT_EQ(rail.kept_descriptions(), 0U);
  EXPECT_TRUE(std::equal(memory.begin(), memory.begin() + 256, memory.begin() + 2048));
}

TEST(ARailsProtocol, NamesTheFabricWhereTheProviderHasSeveral) {
  test::FakeProvider provider;
  EXPECT_EQ(open_rail(provider.nic())->protocol(), "nobody's");
  provider.name = provider.fabric_name = "efa";
  EXPECT_EQ(open_rail(provider.nic())->protocol(), "efa");
  provider.fabric_name = "efa-direct";
  EXPECT_EQ(open_rail(provider.nic())->protocol(), "efa (efa-direct)");
  EXPECT_GE(provider.queue_entries, 32768U) << "it does not guard its queue, whatever it claims";
}

TEST(CommonFabric, IsTheBestThatAllOffer) {
  const std::vector<std::string> both{"efa-direct", "efa"};
  const std::vector<std::string> old{"efa"};
  EXPECT_EQ(common_fabric({both, both}), "efa-direct");
  EXPECT_EQ(common_fabric({both, both, old}), "efa");
  EXPECT_EQ(common_fabric({old, both}), "efa");
  EXPECT_EQ(common_fabric({{"efa-direct"}, old}), "");
}

}  // namespace
}  // namespace weft::fabric
