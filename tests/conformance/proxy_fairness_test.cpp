// Rings of one GPU, and GPUs that send to one, get equal shares of what they compete for, and a
// proxy of a large job costs no more than what it does. Nothing here is timed: the tests count what
// was served in a number of passes.
#include <gtest/gtest.h>

#include <algorithm>
#include <cstring>

#include "tests/support/manual_gpu.hpp"
#include "tests/support/proxy_pes.hpp"
#include "tests/support/simulated_network.hpp"

namespace weft::test {
namespace {

constexpr std::uint32_t kRings = 16;

class ProxyFairness : public ::testing::Test {
 protected:
  void start(std::uint32_t pe_count, std::uint32_t ring_count) {
    network_ = std::make_unique<SimulatedNetwork>(1, NetworkFaults{.delay = 0.0});
    const ProxyOptions options{.pe_count = pe_count,
                               .ring_count = ring_count,
                               .ring_capacity = 1024,
                               .inbox_capacity = 1024,
                               .threads = false};
    pes_ = std::make_unique<ProxyPes>(options, [this](std::uint32_t) {
      transport::rails::RailsTransport::Rails rails;
      rails.push_back(network_->make_rail("nic0"));
      rails.push_back(network_->make_rail("nic1"));
      return rails;
    });
    next_.assign(pe_count, std::vector<std::uint64_t>(ring_count, 0));
    copiers_ = std::vector<ManualCopier>(pe_count);
    appliers_ = std::vector<CountingApplier>(pe_count);
    for (std::uint32_t pe = 0; pe < pe_count; ++pe) {
      (*pes_)[pe].make_engine(options, copiers_[pe], appliers_[pe]);
    }
  }

  ~ProxyFairness() override { pes_.reset(); }

  [[nodiscard]] ProxyPe& pe(std::uint32_t number) const { return (*pes_)[number]; }

  // Small puts, until the ring is full.
  void flood(std::uint32_t from, std::uint32_t ring, std::uint32_t to) {
    device::Command put{.kind = device::CommandKind::Put, .flags = device::kPayloadInSlot};
    device::PutCommand{.dest_offset = 64 * (ring + 1), .bytes = 8}.write_to(put);
    while (post(from, ring, to, put)) {
    }
  }

  // False: the ring is full.
  [[nodiscard]] bool post(std::uint32_t from,
                          std::uint32_t ring,
                          std::uint32_t to,
                          device::Command command) {
    device::RingProducer<proxy::HostMemory> producer(pe(from).rings[ring]->view());
    if (!producer.has_room(next_[from][ring])) {
      return false;
    }
    command.pe = to;
    const std::uint64_t position = producer.claim();
    next_[from][ring] = position + 1;
    std::memcpy(producer.payload(position), &position, sizeof position);
    producer.publish(position, command);
    return true;
  }

  [[nodiscard]] std::uint64_t completed(std::uint32_t from, std::uint32_t ring) const {
    return *pe(from).rings[ring]->view().completed();
  }

  // One pass of all proxies, after which the GPU of `receiver` applies up to `count` of what others
  // sent.
  void pass(std::uint32_t receiver, std::uint32_t count) const {
    pes_->poll_all();
    drain(pe(receiver).inbox.view(), count);
  }

  std::unique_ptr<SimulatedNetwork> network_;
  std::vector<ManualCopier> copiers_;
  std::vector<CountingApplier> appliers_;
  std::unique_ptr<ProxyPes> pes_;
  std::vector<std::vector<std::uint64_t>> next_;  // position of the next command, by PE and ring
};

void expect_equal_shares(const std::vector<std::uint64_t>& served) {
  const auto [least, most] = std::ranges::minmax(served);
  EXPECT_GT(least, 0U);
  EXPECT_GE(static_cast<double>(least), 0.8 * static_cast<double>(most));
}

TEST_F(ProxyFairness, RingsThatFloodOneGpuGetEqualShares) {
  start(2, kRings);
  for (int i = 0; i < 1000; ++i) {
    for (std::uint32_t ring = 0; ring < kRings; ++ring) {
      flood(0, ring, 1);
    }
    pass(1, 64);
  }
  std::vector<std::uint64_t> served;
  for (std::uint32_t ring = 0; ring < kRings; ++ring) {
    served.push_back(completed(0, ring));
  }
  expect_equal_shares(served);
}

// The even rings flood one GPU and the odd ones another, which is slower: each pair competes for
// its own.
TEST_F(ProxyFairness, RingsOfDifferentGpusDoNotTakeEachOthersTurns) {
  start(3, kRings);
  for (int i = 0; i < 1000; ++i) {
    for (std::uint32_t ring = 0; ring < kRings; ++ring) {
      flood(0, ring, 1 + ring % 2);
    }
    pass(1, 64);
    drain(pe(2).inbox.view(), 16);
  }
  for (std::uint32_t first : {0U, 1U}) {
    std::vector<std::uint64_t> served;
    for (std::uint32_t ring = first; ring < kRings; ring += 2) {
      served.push_back(completed(0, ring));
    }
    expect_equal_shares(served);
  }
}

// As a block that sends until it sees what another block does. Without turns the first four rings
// keep the queue full.
TEST_F(ProxyFairness, RingsThatGoOnUntilALaterOneWasServedDoNotGoOnForEver) {
  start(2, kRings);
  constexpr std::uint32_t kAwaited = 7;
  for (std::uint32_t ring = 0; ring < kAwaited; ++ring) {
    flood(0, ring, 1);
  }
  device::Command signal{.kind = device::CommandKind::Signal};
  device::WordUpdate{.word_offset = 8, .operand = 1, .op = device::AtomicOp::Add}.write_to(signal);
  ASSERT_TRUE(post(0, kAwaited, 1, signal));
  int passes = 0;
  for (; *pe(1).word(8) == 0 && passes < 2000; ++passes) {
    for (std::uint32_t ring = 0; ring < kAwaited; ++ring) {
      flood(0, ring, 1);
    }
    pass(1, 64);
  }
  EXPECT_EQ(*pe(1).word(8), 1U) << "after " << passes << " passes";
}

TEST_F(ProxyFairness, SendersToAGpuThatIsTheLimitGetEqualShares) {
  constexpr std::uint32_t kSenders = 4;
  start(1 + kSenders, 1);
  for (int i = 0; i < 3000; ++i) {
    for (std::uint32_t sender = 1; sender <= kSenders; ++sender) {
      flood(sender, 0, 0);
    }
    pass(0, 64);
  }
  std::vector<std::uint64_t> served;
  for (std::uint32_t sender = 1; sender <= kSenders; ++sender) {
    served.push_back(completed(sender, 0));
  }
  expect_equal_shares(served);
}

TEST_F(ProxyFairness, APassVisitsOnlyPeersWithSomethingToDo) {
  start(5, 1);
  EXPECT_EQ(pe(0).engine->active_peer_count(), 0U);
  flood(0, 0, 3);
  pes_->poll_all();
  EXPECT_EQ(pe(0).engine->active_peer_count(), 1U);
  const std::uint64_t posted = next_[0][0];
  for (int i = 0; i < 5000 && completed(0, 0) < posted; ++i) {
    pass(3, 1024);
  }
  EXPECT_EQ(completed(0, 0), posted);
  pes_->poll_all();
  for (std::uint32_t number = 0; number < pes_->count(); ++number) {
    EXPECT_EQ(pe(number).engine->active_peer_count(), 0U) << number;
  }
}

// An engine for PE 0 that is told of many PEs, of which one is on another node: what it keeps for
// each is less.
TEST_F(ProxyFairness, AProxyOfALargeJobQueuesFewerCommandsForEachPeer) {
  start(2, 1);
  constexpr std::uint32_t kPes = 2048;
  const proxy::EngineOptions options;
  const proxy::StagingLayout layout(kPes, options.staging);
  std::vector<std::byte> staging(layout.region_bytes());
  std::vector<bool> is_remote(kPes, false);
  is_remote[1] = true;
  HostRing inbox(64);
  HostRing ring(1024);
  copiers_[0].hold(proxy::CopyDirection::FromGpu);
  proxy::Engine engine(Pe(0), is_remote, options,
                       {.transport = *pe(0).transport,
                        .copier = copiers_[0],
                        .applier = appliers_[0],
                        .on_failed = [](Pe, device::CommandKind, Status) {},
                        .on_copy_failed = nullptr},
                       {.staging = {RegionIndex(1), staging.data(), staging.size()},
                        .heap = {RegionIndex(2), pe(0).heap.data(), pe(0).first_bytes},
                        .inbox = inbox.view(),
                        .rings = {ring.view()}});
  device::RingProducer<proxy::HostMemory> producer(ring.view());
  device::Command put{.kind = device::CommandKind::Put, .pe = 1};
  device::PutCommand{.dest_offset = 0,
                     .source_address = reinterpret_cast<std::uint64_t>(pe(0).heap.data()),
                     .bytes = layout.slot_bytes()}
      .write_to(put);
  for (std::uint64_t i = 0; i < 1000; ++i) {  // none leaves, as the GPU copies nothing
    producer.publish(producer.claim(), put);
  }
  for (int i = 0; i < 100; ++i) {
    engine.poll();
  }
  EXPECT_GE(*ring.view().consumed(), proxy::PeerLimits::of(kPes).commands);
  EXPECT_LE(*ring.view().consumed(), proxy::PeerLimits::of(kPes).commands + layout.slots());
}

}  // namespace
}  // namespace weft::test
