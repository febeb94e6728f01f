// A peer that is another process: reached by cross-memory attach, then killed with an operation open.
#include <gtest/gtest.h>

#include <csignal>

#include <sys/wait.h>
#include <unistd.h>

#include "src/base/clock.hpp"
#include "src/transport/cma/cma_transport.hpp"

namespace weft::test {
namespace {

using namespace transport;

TEST(CmaFaults, AKilledPeerEndsItsOperationsAsFailed) {
  std::vector<std::byte> memory(4096);
  const std::vector<cma::LocalRegion> regions{{memory.data(), memory.size()}};
  int pipe_ends[2];
  ASSERT_EQ(::pipe(pipe_ends), 0);
  const pid_t child = ::fork();
  ASSERT_GE(child, 0);
  if (child == 0) {  // describes itself, makes no progress, and waits for its end
    memory[5] = std::byte{77};
    const cma::CmaTransport peer({}, Pe(1), regions, cma::Mailbox::create());
    const bootstrap::Blob blob = peer.describe();
    const bool written = ::write(pipe_ends[1], blob.data(), blob.size()) > 0;
    ::alarm(30);
    while (written) {
      ::pause();
    }
    ::_exit(1);
  }
  bootstrap::Blob blob(1024);
  const ssize_t bytes = ::read(pipe_ends[0], blob.data(), blob.size());
  ASSERT_GT(bytes, 0);
  blob.resize(static_cast<std::size_t>(bytes));
  bool dead = false;
  cma::CmaTransport me({.is_dead = [&](Pe) { return dead; }}, Pe(0), regions,
                       cma::Mailbox::create());
  me.connect({{}, blob}, {false, true});
  OperationCounter counter;
  std::byte value{};
  EXPECT_EQ(me.post({.kind = OperationKind::Get,
                     .peer = Pe(1),
                     .remote = {.region = {}, .offset = HeapOffset(5)},
                     .local = &value,
                     .bytes = 1,
                     .update = {},
                     .counter = &counter}),
            Status::Ok);
  me.flush(Pe(1));
  EXPECT_TRUE(counter.is_idle() && !counter.has_failed());
  EXPECT_EQ(value, std::byte{77});
  const Operation add{.kind = OperationKind::Atomic,
                      .peer = Pe(1),
                      .remote = {},
                      .bytes = 8,
                      .update = {.code = AtomicCode::Add, .word = {}, .operand = 1},
                      .counter = &counter};
  EXPECT_EQ(me.post(add), Status::Ok);
  me.progress();
  EXPECT_FALSE(counter.is_idle());
  ::kill(child, SIGKILL);
  ::waitpid(child, nullptr, 0);
  dead = true;
  for (const std::uint64_t end_ns = now_ns() + 5'000'000'000;
       !counter.is_idle() && now_ns() < end_ns;) {
    me.progress();
  }
  EXPECT_TRUE(counter.is_idle() && counter.has_failed());
  EXPECT_EQ(me.peer_status(Pe(1)), Status::PeerLost);
}

}  // namespace
}  // namespace weft::test
