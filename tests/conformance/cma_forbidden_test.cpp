// A process to which the kernel really forbids cross-memory attach (seccomp(2)), before or after it
// has connected, exchanges every kind of operation with one that may use it.
#include <gtest/gtest.h>

#include <cerrno>
#include <cstddef>

#include <linux/filter.h>
#include <linux/seccomp.h>
#include <sys/prctl.h>
#include <sys/socket.h>
#include <sys/syscall.h>
#include <sys/wait.h>
#include <unistd.h>

#include "src/base/clock.hpp"
#include "src/transport/cma/cma_transport.hpp"
#include "src/transport/mapped/atomics.hpp"

namespace weft::test {
namespace {

using namespace transport;
using cma::CmaTransport;

constexpr std::size_t kHeapBytes = 1U << 20U;
constexpr std::size_t kBigBytes = 600'001;  // more than all chunks of one transfer hold at once
constexpr std::uint64_t kBigOffset = 4096;
constexpr std::uint64_t kSmallOffset = 800'000;
constexpr std::uint64_t kSignalOffset = 0;
constexpr std::uint64_t kSumOffset = 8;

std::byte pattern(std::size_t i) {
  return static_cast<std::byte>(i * 7 + (i >> 8U) * 13 + 1);
}

bool forbid_attach() {
  sock_filter filter[] = {
      BPF_STMT(BPF_LD | BPF_W | BPF_ABS, offsetof(seccomp_data, nr)),
      BPF_JUMP(BPF_JMP | BPF_JEQ | BPF_K, SYS_process_vm_readv, 1, 0),
      BPF_JUMP(BPF_JMP | BPF_JEQ | BPF_K, SYS_process_vm_writev, 0, 1),
      BPF_STMT(BPF_RET | BPF_K, SECCOMP_RET_ERRNO | EPERM),
      BPF_STMT(BPF_RET | BPF_K, SECCOMP_RET_ALLOW),
  };
  const sock_fprog program{.len = std::size(filter), .filter = filter};
  return ::prctl(PR_SET_NO_NEW_PRIVS, 1, 0, 0, 0) == 0 &&
         ::prctl(PR_SET_SECCOMP, SECCOMP_MODE_FILTER, &program) == 0;
}

bootstrap::Blob trade(int socket, const bootstrap::Blob& mine) {
  bootstrap::Blob theirs(1024);
  if (::write(socket, mine.data(), mine.size()) < 0) {
    return {};
  }
  const ssize_t bytes = ::read(socket, theirs.data(), theirs.size());
  theirs.resize(bytes < 0 ? 0 : static_cast<std::size_t>(bytes));
  return theirs;
}

// One of two PEs, each in its process.
struct Side {
  Side(Pe pe, const cma::CmaOptions& options)
      : me(pe), transport(options, pe, {{heap.data(), heap.size()}}, cma::Mailbox::create()) {}

  void connect(const bootstrap::Blob& theirs) {
    const bool is_first = me == Pe(0);
    transport.connect(
        {is_first ? bootstrap::Blob{} : theirs, is_first ? theirs : bootstrap::Blob{}},
        {!is_first, is_first});
  }

  [[nodiscard]] Operation operation(OperationKind kind,
                                    std::uint64_t offset,
                                    std::span<std::byte> at) {
    return {.kind = kind,
            .peer = Pe(1 - me.value),
            .remote = {.region = {}, .offset = HeapOffset(offset)},
            .local = at.data(),
            .bytes = at.size(),
            .update = {},
            .counter = &counter};
  }

  [[nodiscard]] bool post(const Operation& operation) {
    Status status = transport.post(operation);
    while (status == Status::Again) {
      transport.progress();
      status = transport.post(operation);
    }
    return status == Status::Ok;
  }

  // Big data, small data, and an atomic, all while the peer makes progress.
  [[nodiscard]] bool post_all() {
    for (std::size_t i = 0; i < kBigBytes; ++i) {
      source[i] = pattern(i);
    }
    Operation big = operation(OperationKind::PutSignal, kBigOffset, source);
    big.update = {.code = AtomicCode::Add, .word = word(kSignalOffset), .operand = 1};
    Operation copied = operation(OperationKind::Put, kSmallOffset, std::span(source).first(10));
    copied.copy_source = true;
    Operation sum = operation(OperationKind::Atomic, kSumOffset, {});
    sum.bytes = 8;
    sum.update = {.code = AtomicCode::Add, .word = word(kSumOffset), .operand = 5};
    sum.result = &old_sum;
    return post(big) && post(copied) && post(sum) &&
           post(
               operation(OperationKind::Put, kSmallOffset + 10, std::span(source).subspan(10, 20)));
  }

  [[nodiscard]] bool finish(OperationCounter& which) {
    transport.flush(Pe(1 - me.value));
    for (const std::uint64_t end_ns = now_ns() + 20'000'000'000; now_ns() < end_ns;) {
      transport.progress();
      if (which.is_idle()) {
        return !which.has_failed();
      }
    }
    return false;
  }

  // What the peer's post_all left here.
  [[nodiscard]] bool has_all() {
    for (std::size_t i = 0; i < kBigBytes; ++i) {
      if (heap[kBigOffset + i] != pattern(i) || (i < 30 && heap[kSmallOffset + i] != pattern(i))) {
        return false;
      }
    }
    return load(kSumOffset) == 5;
  }

  [[nodiscard]] std::uint64_t load(std::uint64_t offset) {
    return load_word(reinterpret_cast<std::uint64_t*>(&heap[offset]));
  }

  [[nodiscard]] static heap::Place word(std::uint64_t offset) {
    return {.region = {}, .offset = HeapOffset(offset)};
  }

  Pe me;
  std::vector<std::byte> heap = std::vector<std::byte>(kHeapBytes);
  std::vector<std::byte> source = std::vector<std::byte>(kBigBytes);
  std::uint64_t old_sum = 77;
  OperationCounter counter;
  CmaTransport transport;
};

// Returns the step that failed, or 0.
int run_forbidden(int socket, bool forbidden_early) {
  ::alarm(60);
  Side side(Pe(1), {.is_dead = {}});
  if (forbidden_early && !forbid_attach()) {
    return 1;
  }
  side.connect(trade(socket, side.transport.describe()));
  if (!forbidden_early && !forbid_attach()) {
    return 2;
  }
  std::vector<std::byte> big(kBigBytes);
  if (!side.post_all() || !side.finish(side.counter) || side.old_sum != 0) {
    return 3;
  }
  if (!side.post(side.operation(OperationKind::Get, kBigOffset, big)) ||
      !side.post(side.operation(OperationKind::Get, kSmallOffset, std::span(big).first(8))) ||
      !side.finish(side.counter) || big != side.source) {
    return 4;
  }
  bool has_all = false;
  for (const std::uint64_t end_ns = now_ns() + 20'000'000'000; !has_all && now_ns() < end_ns;) {
    side.transport.progress();
    has_all = side.load(kSignalOffset) == 1 && side.has_all();
  }
  char token = 1;
  const bool told = ::write(socket, &token, 1) == 1;
  while (::recv(socket, &token, 1, MSG_DONTWAIT) < 0) {  // the peer may want more
    side.transport.progress();
  }
  return has_all && told ? 0 : 5;
}

class CmaForbidden : public ::testing::TestWithParam<bool> {};

TEST_P(CmaForbidden, AFilteredProcessAndAFreeOneReachEachOther) {
  int sockets[2];
  ASSERT_EQ(::socketpair(AF_UNIX, SOCK_SEQPACKET, 0, sockets), 0);
  const pid_t child = ::fork();
  ASSERT_GE(child, 0);
  if (child == 0) {
    ::_exit(run_forbidden(sockets[1], GetParam()));
  }
  ::close(sockets[1]);
  Side side(Pe(0), {.slot_path = cma::SlotPath::Always, .is_dead = {}});
  side.connect(trade(sockets[0], side.transport.describe()));
  EXPECT_TRUE(side.post_all());  // the child is asked to copy, and may not
  EXPECT_TRUE(side.finish(side.counter));
  EXPECT_EQ(side.old_sum, 0U);
  char token = 0;
  while (::recv(sockets[0], &token, 1, MSG_DONTWAIT) < 0) {
    side.transport.progress();
  }
  EXPECT_EQ(side.load(kSignalOffset), 1U);
  EXPECT_TRUE(side.has_all());
  EXPECT_EQ(::write(sockets[0], &token, 1), 1);
  int status = 0;
  ASSERT_EQ(::waitpid(child, &status, 0), child);
  EXPECT_TRUE(WIFEXITED(status));
  EXPECT_EQ(WEXITSTATUS(status), 0);
  ::close(sockets[0]);
}

INSTANTIATE_TEST_SUITE_P(Filter, CmaForbidden, ::testing::Bool(), [](const auto& filtered) {
  return filtered.param ? "before_connect" : "after_connect";
});

}  // namespace
}  // namespace weft::test
