// The order and the independence of a proxy's streams, step by step: one thread drives all PEs, and
// the test decides when a copy is done and when the GPU applies its inbox.
#include <gtest/gtest.h>

#include <array>
#include <cstring>
#include <memory>

#include "src/base/clock.hpp"
#include "tests/support/manual_gpu.hpp"
#include "tests/support/proxy_pes.hpp"
#include "tests/support/simulated_network.hpp"

namespace weft::test {
namespace {

using device::CommandKind;
using proxy::CopyDirection;
using transport::rails::RailsTransport;

class ProxyStreams : public ::testing::Test {
 protected:
  static constexpr std::size_t kBulk = 3000;
  static constexpr std::size_t kSource = std::size_t{1} << 20U;

  void start(std::uint32_t pe_count, transport::rails::RailsOptions rails = {}) {
    const ProxyOptions options{
        .pe_count = pe_count,
        .engine = {.staging = {.slots_per_peer = 4, .slot_bytes = 8192}, .peer_check_us = 0},
        .rails = rails,
        .threads = false};
    pes_ = std::make_unique<ProxyPes>(options, [this](std::uint32_t) {
      RailsTransport::Rails made;
      made.push_back(network_.make_rail("nic"));
      return made;
    });
    for (std::uint32_t pe = 0; pe < pe_count; ++pe) {
      at(pe).make_engine(options, copiers_[pe], appliers_[pe]);
      std::fill_n(at(pe).heap.data() + kSource, kBulk, std::byte{0x5C});
    }
  }

  ProxyPe& at(std::uint32_t pe) { return (*pes_)[pe]; }

  void poll(int passes = 3000) {
    for (int i = 0; i < passes; ++i) {
      pes_->poll_all();
    }
  }

  // What a GPU thread that waits would do.
  std::uint32_t apply(std::uint32_t pe) { return test::drain(at(pe).inbox.view()); }

  bool is_complete(std::uint32_t pe, std::uint64_t position, std::uint32_t ring = 0) {
    return device::RingProducer<proxy::HostMemory>(at(pe).rings[ring]->view())
        .is_complete(position);
  }

  std::byte* heap(std::uint32_t pe) { return at(pe).heap.data(); }

  SimulatedNetwork network_{21, {.delay = 0.1}};
  std::array<ManualCopier, 3> copiers_;
  std::array<CountingApplier, 3> appliers_;
  std::unique_ptr<ProxyPes> pes_;
};

TEST_F(ProxyStreams, ASignalWaitsForTheBulkDataBeforeIt) {
  start(2);
  copiers_[1].hold(CopyDirection::ToGpu);
  GpuThread gpu = at(0).thread();
  const std::uint64_t position =
      gpu.put_signal(heap(0) + 4096, heap(0) + kSource, kBulk, at(0).word(64), 1, Pe(1));
  poll();
  EXPECT_EQ(copiers_[1].waiting(CopyDirection::ToGpu), 1U);
  EXPECT_EQ(apply(1), 0U);
  copiers_[1].go_on(CopyDirection::ToGpu);
  poll();
  EXPECT_FALSE(is_complete(0, position));
  EXPECT_EQ(apply(1), 1U);
  EXPECT_EQ(*at(1).word(64), 1U);
  EXPECT_EQ(heap(1)[4096 + kBulk - 1], std::byte{0x5C});
  poll();
  EXPECT_TRUE(is_complete(0, position));
}

TEST_F(ProxyStreams, BulkDataOvertakesSmallThingsUnlessAFenceIsBetween) {
  start(2);
  copiers_[1].hold(CopyDirection::ToGpu);
  GpuThread gpu = at(0).thread();
  gpu.signal_add(at(0).word(64), 1, Pe(1));
  gpu.put(heap(0) + 4096, heap(0) + kSource, kBulk, Pe(1));
  poll();
  EXPECT_EQ(copiers_[1].waiting(CopyDirection::ToGpu), 1U);
  gpu.fence();
  gpu.put(heap(0) + 8192, heap(0) + kSource, kBulk, Pe(1));
  gpu.put(heap(0) + 12288, heap(0) + kSource, kBulk, Pe(1));
  poll();
  EXPECT_EQ(copiers_[1].waiting(CopyDirection::ToGpu), 1U);
  EXPECT_EQ(apply(1), 1U);
  poll();
  EXPECT_EQ(copiers_[1].waiting(CopyDirection::ToGpu), 3U);
}

TEST_F(ProxyStreams, AFenceBeforeASmallThingAlsoHoldsBackTheBulkDataBehindIt) {
  start(2);
  GpuThread gpu = at(0).thread();
  copiers_[1].hold(CopyDirection::ToGpu);
  gpu.signal_add(at(0).word(64), 1, Pe(1));
  gpu.fence();
  gpu.signal_add(at(0).word(72), 1, Pe(1));
  gpu.put(heap(0) + 8192, heap(0) + kSource, kBulk, Pe(1));
  poll();
  EXPECT_EQ(copiers_[1].waiting(CopyDirection::ToGpu), 0U);
  EXPECT_EQ(apply(1), 2U);
  poll();
  EXPECT_EQ(copiers_[1].waiting(CopyDirection::ToGpu), 1U);
}

TEST_F(ProxyStreams, APeerThatTakesNothingHoldsUpItsRingOnly) {
  start(3);
  GpuThread stuck = at(0).thread(0);
  GpuThread other = at(0).thread(1);
  const device::RingView& ring = at(0).rings[0]->view();
  std::uint64_t last = 0;
  // PE 1 applies nothing: its inbox, its slots and the queue to it fill up, and then the ring.
  while (last + 1 - proxy::HostMemory::load_far(ring.consumed()) < ring.capacity && last < 5000) {
    last = stuck.put_signal(heap(0) + 4096, heap(0) + kSource, 400, at(0).word(64), 1, Pe(1));
    poll(last % 8 == 0 ? 50 : 0);
  }
  ASSERT_LT(last, 5000U);
  const std::uint64_t position =
      other.put_signal(heap(0) + 4096, heap(0) + kSource, kBulk, at(0).word(64), 1, Pe(2));
  poll();
  EXPECT_EQ(apply(2), 1U);
  poll();
  EXPECT_TRUE(is_complete(0, position, 1));
  EXPECT_FALSE(is_complete(0, last, 0));
  for (int i = 0; i < 100 && !is_complete(0, last, 0); ++i) {
    apply(1);
    poll(200);
  }
  EXPECT_TRUE(is_complete(0, last, 0));
}

TEST_F(ProxyStreams, TheApplierIsWokenWhenNobodyLooks) {
  start(2);
  GpuThread gpu = at(0).thread();
  gpu.signal_add(at(0).word(64), 1, Pe(1));
  const std::uint64_t give_up_ns = now_ns() + 2'000'000'000;
  while (appliers_[1].wakes == 0 && now_ns() < give_up_ns) {
    pes_->poll_all();
  }
  EXPECT_GT(appliers_[1].wakes, 0);
  EXPECT_EQ(apply(1), 1U);
  poll(100);
  const int wakes = appliers_[1].wakes;
  poll(100);
  EXPECT_EQ(appliers_[1].wakes, wakes);
}

TEST_F(ProxyStreams, ALostPeersCommandsCompleteAsFailedAndOthersGoOn) {
  start(3, {.rail_stall_ms = 20, .peer_lost_ms = 60});
  GpuThread gpu = at(0).thread();
  const std::uint64_t first =
      gpu.put_signal(heap(0) + 4096, heap(0) + kSource, 64, at(0).word(64), 1, Pe(1));
  poll();
  EXPECT_FALSE(is_complete(0, first));
  network_.kill(1);
  gpu.put(heap(0) + 4096, heap(0) + kSource, 100'000, Pe(1));
  device::Command get;
  get.kind = CommandKind::Get;
  get.flags = device::kReplyWanted;
  get.pe = 1;
  device::GetCommand{.dest_address = reinterpret_cast<std::uint64_t>(heap(0)), .bytes = 8}.write_to(
      get);
  const std::uint64_t asked = gpu.issue(get);
  const std::uint64_t give_up_ns = now_ns() + 10'000'000'000;
  while (!is_complete(0, asked) && now_ns() < give_up_ns) {
    pes_->poll_all();
  }
  ASSERT_TRUE(is_complete(0, asked));
  EXPECT_GE(at(0).failures.count(Pe(1), Status::PeerLost), 3U);
  EXPECT_EQ(gpu.reply_of(asked), 0U);
  const std::uint64_t later = gpu.put(heap(0) + 4096, heap(0) + kSource, 64, Pe(1));
  const std::uint64_t well = gpu.put(heap(0) + 4096, heap(0) + kSource, 64, Pe(2));
  poll();
  EXPECT_TRUE(is_complete(0, later));
  EXPECT_EQ(apply(2), 1U);
  poll();
  EXPECT_TRUE(is_complete(0, well));
  EXPECT_EQ(at(0).failures.count(Pe(2), Status::PeerLost), 0U);
}

}  // namespace
}  // namespace weft::test
