// Warm-up towards a peer that no rail reaches ends in an error that names it; one rail is enough.
#include <gtest/gtest.h>

#include <array>
#include <chrono>
#include <thread>

#include <gmock/gmock.h>

#include "src/base/error.hpp"
#include "tests/support/rails_pes.hpp"
#include "tests/support/simulated_network.hpp"

namespace weft::test {
namespace {

constexpr std::array kPeer{Pe(1)};
constexpr std::uint32_t kTimeoutS = 2;

class UnreachablePeer : public ::testing::Test {
 protected:
  // Rails 0 and 1 are PE 0's, 2 and 3 are PE 1's.
  SimulatedNetwork network{9, {}};
  std::vector<std::unique_ptr<RailsPe>> pes = make_rails_pes(2, 4096, {}, [this](std::uint32_t) {
    transport::rails::RailsTransport::Rails rails;
    rails.push_back(network.make_rail("nic0"));
    rails.push_back(network.make_rail("nic1"));
    return rails;
  });

  std::jthread run_peer() {
    return std::jthread([this](const std::stop_token& stop) {
      while (!stop.stop_requested()) {
        pes[1]->transport->progress();
      }
    });
  }
};

TEST_F(UnreachablePeer, IsNamedByWarmUp) {
  network.kill(2);
  network.kill(3);
  try {
    pes[0]->transport->warm_up(kPeer, kTimeoutS);
    FAIL() << "nobody was told";
  } catch (const Error& error) {
    EXPECT_EQ(error.status(), Status::PeerLost);
    EXPECT_THAT(error.what(),
                testing::HasSubstr("PE 1 was not reached over any of 2 x 2 rails (ours: nic0 nic0, "
                                   "its: nic0); "));
  }
}

TEST_F(UnreachablePeer, IsNoneWhileOneRailReachesIt) {
  network.kill(3);
  const auto peer = run_peer();
  pes[0]->transport->warm_up(kPeer, kTimeoutS);
  EXPECT_EQ(pes[0]->transport->peer_status(Pe(1)), Status::Ok);
}

TEST_F(UnreachablePeer, IsTriedAgainUntilTheTimeout) {
  network.kill(2);
  network.kill(3);
  const auto peer = run_peer();
  const std::jthread cable([this] {
    std::this_thread::sleep_for(std::chrono::milliseconds(600));
    network.revive(3);
  });
  pes[0]->transport->warm_up(kPeer, 30);
  EXPECT_EQ(pes[0]->transport->peer_status(Pe(1)), Status::Ok);
}

// Longer than WEFT_PEER_LOST_MS, after which a peer is lost while a job runs.
TEST_F(UnreachablePeer, IsNotLostWhileTheJobStarts) {
  network.kill(2);
  network.kill(3);
  const auto peer = run_peer();
  const std::jthread cable([this] {
    std::this_thread::sleep_for(std::chrono::milliseconds(6500));
    network.revive(2);
  });
  pes[0]->transport->warm_up(kPeer, 30);
  EXPECT_EQ(pes[0]->transport->peer_status(Pe(1)), Status::Ok);
}

// A network that does not reach the peer, and does not say so.
TEST_F(UnreachablePeer, IsNoneWhileAnotherRailNeverAnswers) {
  network.hold_writes(3, 1);
  const auto peer = run_peer();
  pes[0]->transport->warm_up(kPeer, 60);
  EXPECT_GT(network.held(), 0U) << "it went on without that answer";
  EXPECT_EQ(pes[0]->transport->peer_status(Pe(1)), Status::Ok);
}

}  // namespace
}  // namespace weft::test
