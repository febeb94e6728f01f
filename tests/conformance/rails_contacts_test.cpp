// Peers by first use: one that nobody talks to costs a PE little memory and no time, and is known
// as before when something is sent to it, or comes from it.
#include <gtest/gtest.h>

#include <array>
#include <string>
#include <vector>

#include "src/base/clock.hpp"
#include "tests/support/many_peers.hpp"
#include "tests/support/rails_pes.hpp"
#include "tests/support/raw_peer.hpp"
#include "tests/support/simulated_network.hpp"

namespace weft::test {
namespace {

using namespace transport;

constexpr std::uint32_t kPeers = 1000;
constexpr std::uint32_t kRails = 4;
constexpr std::size_t kSilentBytesMax = 1024;
constexpr std::size_t kUsedBytesMax = 8192;

bool counts_allocations() {
  const std::size_t before = allocated_bytes();
  const std::vector<std::byte> some(1U << 20U);
  return allocated_bytes() - before >= some.size();
}

TEST(RailsContacts, AreMadeByAnOperationToAPeerOrAMessageFromIt) {
  ManyPeers scene(kPeers, kRails);
  EXPECT_EQ(scene.transport().met_peer_count(), 0U);
  for (const std::uint32_t pe : {3U, 999U, 1000U, 3U}) {
    EXPECT_EQ(scene.put_signal(Pe(pe)), Status::Ok);
  }
  EXPECT_EQ(scene.transport().met_peer_count(), 3U);
  scene.hear_from(Pe(500));
  scene.hear_from(Pe(3));
  EXPECT_EQ(scene.transport().met_peer_count(), 4U);
  for (const std::uint32_t pe : {3U, 999U, 1000U}) {
    scene.acknowledge(Pe(pe), pe == 3 ? 2 : 1);
  }
  EXPECT_TRUE(scene.counter.is_idle());
  EXPECT_FALSE(scene.counter.has_failed());
}

TEST(RailsContacts, AreNotMadeByQuestionsAboutAPeer) {
  ManyPeers scene(kPeers, kRails);
  scene.transport().flush(Pe(7));
  EXPECT_EQ(scene.transport().peer_status(Pe(7)), Status::Ok);
  EXPECT_EQ(scene.transport().moved(Pe(7)), 0U);
  EXPECT_EQ(scene.transport().peer_counters(Pe(7)).size(), kRails);
  EXPECT_TRUE(scene.transport().peer_counters(Pe(0)).empty()) << "this PE";
  EXPECT_EQ(scene.transport().rails().peer_rail_count_max, kRails);
  scene.progress(10);
  EXPECT_EQ(scene.transport().met_peer_count(), 0U);
}

TEST(RailsContacts, ThatEndBeforeTheyWereMetAreLost) {
  ManyPeers scene(kPeers, kRails);
  scene.transport().lose(Pe(7));
  EXPECT_EQ(scene.transport().peer_status(Pe(7)), Status::PeerLost);
  EXPECT_EQ(scene.put_signal(Pe(7)), Status::PeerLost);
  EXPECT_EQ(scene.put_signal(Pe(8)), Status::Ok);
}

TEST(RailsContacts, TakeMemoryWhenTheyAreMet) {
  if (!counts_allocations()) {
    GTEST_SKIP() << "this allocator does not say how much it has given out";
  }
  ManyPeers scene(kPeers, kRails);
  const std::size_t silent = scene.silent_bytes() / kPeers;
  EXPECT_LE(silent, kSilentBytesMax);
  std::size_t before = allocated_bytes();
  for (std::uint32_t pe = 1; pe <= kPeers / 2; ++pe) {
    scene.hear_from(Pe(pe));
  }
  EXPECT_LE(silent + (allocated_bytes() - before) / (kPeers / 2), kUsedBytesMax) << "has sent";
  before = allocated_bytes();
  for (std::uint32_t pe = kPeers / 2 + 1; pe <= kPeers; ++pe) {
    ASSERT_EQ(scene.put_signal(Pe(pe)), Status::Ok);
    scene.progress(4);
    scene.acknowledge(Pe(pe), 1);
  }
  EXPECT_LE(silent + (allocated_bytes() - before) / (kPeers / 2), kUsedBytesMax) << "was sent to";
  EXPECT_EQ(scene.transport().met_peer_count(), kPeers);
}

// PE 0 and PE 1 with a transport each.
class RailsLateContacts : public ::testing::TestWithParam<bool> {
 protected:
  static constexpr std::size_t kBytes = 65536;

  void make() {
    pes_ = make_rails_pes(2, kBytes, {}, [&](std::uint32_t pe) {
      rails::RailsTransport::Rails rails;
      for (std::uint32_t i = 0; i < 2; ++i) {
        rails.push_back(network_.make_rail("nic" + std::to_string(2 * pe + i)));
      }
      return rails;
    });
  }

  [[nodiscard]] Operation put_signal(RegionIndex region, std::size_t bytes) {
    return {.kind = OperationKind::PutSignal,
            .peer = Pe(1),
            .remote = {region, HeapOffset(1024)},
            .local = source_.data(),
            .bytes = bytes,
            .update = {.code = AtomicCode::Add, .word = {region, HeapOffset(64)}, .operand = 1},
            .counter = &counter_};
  }

  SimulatedNetwork network_{5, {.needs_senders = GetParam()}};
  std::vector<std::unique_ptr<RailsPe>> pes_;
  std::vector<std::byte> source_ = std::vector<std::byte>(kBytes / 2, std::byte{0x5A});
  OperationCounter counter_;
};

// Pieces may be the first that a PE hears of a peer, before any message.
TEST_P(RailsLateContacts, OfAPutSignalThatComesInPieces) {
  make();
  ASSERT_EQ(pes_[0]->transport->post(put_signal(RegionIndex(0), kBytes / 2)), Status::Ok);
  pes_[0]->transport->flush(Pe(1));
  EXPECT_TRUE(progress_until(pes_, [&] { return counter_.is_idle(); }));
  EXPECT_FALSE(counter_.has_failed());
  EXPECT_EQ(*pes_[1]->word(64), 1U);
  EXPECT_EQ(pes_[1]->memory[1024 + kBytes / 2 - 1], std::byte{0x5A});
  EXPECT_EQ(pes_[1]->transport->met_peer_count(), 1U);
}

// Regions that came, were replaced and went before anything was sent.
TEST_P(RailsLateContacts, KnowTheRegionsOfTheMeantime) {
  make();
  std::array<std::vector<std::uint64_t>, 2> first;
  std::array<std::vector<std::uint64_t>, 2> second;
  const auto add = [&](RegionIndex index, std::array<std::vector<std::uint64_t>, 2>& memory) {
    std::vector<bootstrap::Blob> blobs;
    for (std::size_t pe = 0; pe < 2; ++pe) {
      memory[pe].assign(kBytes / 8, 0);
      blobs.push_back(pes_[pe]->transport->add_region(
          index, {reinterpret_cast<std::byte*>(memory[pe].data()), kBytes}));
    }
    for (const auto& pe : pes_) {
      pe->transport->connect_region(index, blobs);
    }
  };
  add(RegionIndex(1), first);
  add(RegionIndex(2), first);
  for (const auto& pe : pes_) {
    pe->transport->remove_region(RegionIndex(1));
    pe->transport->remove_region(RegionIndex(2));
  }
  add(RegionIndex(1), second);
  EXPECT_EQ(pes_[0]->transport->met_peer_count(), 0U);
  EXPECT_EQ(pes_[0]->transport->post(put_signal(RegionIndex(2), 8)), Status::InvalidArgument);
  ASSERT_EQ(pes_[0]->transport->post(put_signal(RegionIndex(1), kBytes / 2)), Status::Ok);
  pes_[0]->transport->flush(Pe(1));
  EXPECT_TRUE(progress_until(pes_, [&] { return counter_.is_idle(); }));
  EXPECT_FALSE(counter_.has_failed());
  EXPECT_EQ(second[1][64 / 8], 1U);
  EXPECT_EQ(second[1][1024 / 8], 0x5A5A'5A5A'5A5A'5A5AU);
}

TEST_P(RailsLateContacts, AreNotReachedOverANicThatWentDownBefore) {
  make();
  network_.unplug(0);
  const std::uint64_t start_ns = now_ns();
  while (now_ns() - start_ns < 60'000'000) {  // a tick looks at the NICs
    progress_all(pes_);
  }
  ASSERT_EQ(pes_[0]->transport->post(put_signal(RegionIndex(0), kBytes / 2)), Status::Ok);
  pes_[0]->transport->flush(Pe(1));
  EXPECT_TRUE(progress_until(pes_, [&] { return counter_.is_idle(); }));
  EXPECT_FALSE(counter_.has_failed());
  EXPECT_EQ(read_counter(pes_[0]->counters[0].tx_bytes), 0U);
  EXPECT_GE(read_counter(pes_[0]->counters[1].tx_bytes), kBytes / 2);
}

INSTANTIATE_TEST_SUITE_P(WhoeverMaySend, RailsLateContacts, ::testing::Bool(), [](const auto& of) {
  return of.param ? "KnownSendersOnly" : "AnySender";
});

}  // namespace
}  // namespace weft::test
