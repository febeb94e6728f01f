// A peer of the cma transport that is another process and is killed, and addresses that nobody
// mapped.
#include <gtest/gtest.h>

#include <algorithm>
#include <csignal>

#include <sys/mman.h>
#include <sys/wait.h>
#include <unistd.h>

#include "src/base/clock.hpp"
#include "tests/conformance/cma_pes.hpp"

namespace weft::test {
namespace {

using namespace transport;

constexpr std::size_t kBytes = 16384;  // more than is gathered

// PE 1 is a process that describes itself and then never makes progress; the other PEs are here.
class CmaFaults : public ::testing::Test {
 protected:
  void SetUp() override {
    int pipe_ends[2];
    ASSERT_EQ(::pipe(pipe_ends), 0);
    child_ = ::fork();
    ASSERT_GE(child_, 0);
    if (child_ == 0) {
      memory_[5] = std::byte{77};
      const cma::CmaTransport peer({}, Pe(1), regions_, cma::Mailbox::create());
      const bootstrap::Blob blob = peer.describe();
      const bool written = ::write(pipe_ends[1], blob.data(), blob.size()) > 0;
      ::alarm(30);
      while (written) {
        ::pause();
      }
      ::_exit(1);
    }
    blob_.resize(1024);
    const ssize_t bytes = ::read(pipe_ends[0], blob_.data(), blob_.size());
    ASSERT_GT(bytes, 0);
    blob_.resize(static_cast<std::size_t>(bytes));
    ::close(pipe_ends[0]);
    ::close(pipe_ends[1]);
  }

  void TearDown() override { kill_child(); }

  void kill_child() {
    if (child_ > 0) {
      ::kill(child_, SIGKILL);
      ::waitpid(child_, nullptr, 0);
      child_ = 0;
    }
  }

  [[nodiscard]] std::unique_ptr<cma::CmaTransport> connected(bool knows_death,
                                                             bool is_forbidden = false) {
    cma::CmaOptions options{.is_dead = {}, .pretend_forbidden = is_forbidden};
    if (knows_death) {
      options.is_dead = [this](Pe) { return is_dead_; };
    }
    auto pe = std::make_unique<cma::CmaTransport>(options, Pe(0), regions_, cma::Mailbox::create());
    pe->connect({{}, blob_}, {false, true});
    return pe;
  }

  [[nodiscard]] Operation get(void* dest, std::size_t bytes) {
    return {.kind = OperationKind::Get,
            .peer = Pe(1),
            .remote = {.region = {}, .offset = HeapOffset(5)},
            .local = dest,
            .bytes = bytes,
            .update = {},
            .counter = &counter_};
  }

  [[nodiscard]] Operation add() {
    return {.kind = OperationKind::Atomic,
            .peer = Pe(1),
            .remote = {},
            .bytes = 8,
            .update = {.code = AtomicCode::Add, .word = {}, .operand = 1},
            .counter = &counter_};
  }

  // Within 5 s, and as failed.
  void expect_failure(cma::CmaTransport& pe) {
    for (const std::uint64_t end_ns = now_ns() + 5'000'000'000;
         !counter_.is_idle() && now_ns() < end_ns;) {
      pe.progress();
    }
    EXPECT_TRUE(counter_.is_idle() && counter_.has_failed());
    EXPECT_EQ(pe.peer_status(Pe(1)), Status::PeerLost);
  }

  std::vector<std::byte> memory_ = std::vector<std::byte>(2 * kBytes);
  std::vector<std::byte> dest_ = std::vector<std::byte>(kBytes);
  std::vector<std::span<std::byte>> regions_{memory_};
  pid_t child_ = 0;
  bootstrap::Blob blob_;
  bool is_dead_ = false;
  OperationCounter counter_;
};

TEST_F(CmaFaults, AKilledPeerEndsItsOperationsAsFailed) {
  const auto me = connected(true);
  EXPECT_EQ(me->post(get(dest_.data(), 1)), Status::Ok);
  me->flush(Pe(1));
  EXPECT_TRUE(counter_.is_idle() && !counter_.has_failed());
  EXPECT_EQ(dest_[0], std::byte{77});
  EXPECT_EQ(me->post(add()), Status::Ok);
  me->progress();
  EXPECT_FALSE(counter_.is_idle());
  kill_child();
  is_dead_ = true;
  expect_failure(*me);
}

TEST_F(CmaFaults, AKilledPeerEndsTransfersThroughChunksAsFailed) {
  const auto me = connected(true, true);
  EXPECT_EQ(me->post(get(dest_.data(), kBytes)), Status::Ok);
  EXPECT_EQ(me->post(add()), Status::Ok);
  me->progress();
  EXPECT_FALSE(counter_.is_idle());
  kill_child();
  is_dead_ = true;
  expect_failure(*me);
}

TEST_F(CmaFaults, ACopyFindsOutThatThePeerIsGone) {
  const auto me = connected(false);
  kill_child();
  EXPECT_EQ(me->post(get(dest_.data(), kBytes)), Status::Ok);
  expect_failure(*me);
}

TEST_F(CmaFaults, GatheredCopiesFindOutThatThePeerIsGone) {
  const auto me = connected(false);
  kill_child();
  EXPECT_EQ(me->post(get(dest_.data(), 1)), Status::Ok);
  EXPECT_EQ(me->post(get(dest_.data(), 2)), Status::Ok);
  me->flush(Pe(1));
  expect_failure(*me);
}

TEST_F(CmaFaults, AFullRingOfADeadPeerDoesNotHoldItsSendersForEver) {
  std::vector<std::unique_ptr<cma::CmaTransport>> others;
  for (std::uint32_t i = 0; i < cma::kRingSlots / cma::kStatusSlots; ++i) {
    others.push_back(connected(false));
    while (others.back()->post(add()) == Status::Ok) {
    }
  }
  const auto me = connected(true);
  counter_ = {};
  EXPECT_EQ(me->post(add()), Status::Again);
  kill_child();
  is_dead_ = true;
  Status status = Status::Again;
  for (const std::uint64_t end_ns = now_ns() + 5'000'000'000;
       status == Status::Again && now_ns() < end_ns;) {
    status = me->post(add());
  }
  EXPECT_EQ(status, Status::Ok);
  expect_failure(*me);
}

TEST_F(CmaFaults, AnAddressThatIsNotMappedIsNoLostPeer) {
  const auto me = connected(true);
  void* hole = ::mmap(nullptr, kBytes, PROT_NONE, MAP_PRIVATE | MAP_ANONYMOUS, -1, 0);
  ASSERT_NE(hole, MAP_FAILED);
  ::testing::internal::CaptureStderr();
  EXPECT_EQ(me->post(get(hole, kBytes)), Status::Internal);
  EXPECT_EQ(me->post(get(hole, kBytes)), Status::Internal);
  const std::string text = ::testing::internal::GetCapturedStderr();
  EXPECT_NE(text.find("PE 1"), std::string::npos) << text;
  EXPECT_EQ(std::count(text.begin(), text.end(), '\n'), 1) << text;
  EXPECT_TRUE(counter_.is_idle() && !counter_.has_failed());
  EXPECT_EQ(me->peer_status(Pe(1)), Status::Ok);
  EXPECT_EQ(me->post(get(dest_.data(), kBytes)), Status::Ok);
  EXPECT_EQ(dest_[0], std::byte{77});
  ::munmap(hole, kBytes);
}

}  // namespace
}  // namespace weft::test
