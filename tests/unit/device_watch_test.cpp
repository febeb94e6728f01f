// What the host says of kernels that failed or wait for long: the page that both access is written
// by the test.
#include <weft/device/state.hpp>

#include <gtest/gtest.h>

#include <chrono>
#include <functional>
#include <string>
#include <string_view>
#include <thread>

#include "src/base/atomic.hpp"
#include "src/runtime/device/watch.hpp"

namespace weft::test {
namespace {

using device::FailureKind;
using device::FailureRecord;
using device::OperationName;
using runtime::DeviceWatch;
using runtime::KernelPage;

FailureRecord record_of(FailureKind kind, OperationName operation) {
  return {.kind = static_cast<std::uint32_t>(kind),
          .operation = static_cast<std::uint32_t>(operation),
          .pe = -1,
          .block = 3,
          .address = 0x1000,
          .expected = 5,
          .seen = 4,
          .waited_ms = 12'345};
}

bool soon(const std::function<bool()>& done) {
  for (int i = 0; i < 2000 && !done(); ++i) {
    std::this_thread::sleep_for(std::chrono::milliseconds(5));
  }
  return done();
}

TEST(DescribeFailure, EachKindSaysWhatToDo) {
  const auto text = [](FailureKind kind, OperationName operation) {
    return runtime::describe_failure(record_of(kind, operation));
  };
  EXPECT_EQ(text(FailureKind::None, OperationName::Put), "");
  EXPECT_EQ(text(FailureKind::TimedOut, OperationName::WaitUntil),
            "a kernel has been waiting in wait_until (block 3) for 12 s: the word at 0x1000 is 4, "
            "awaited with 5; WEFT_TIMEOUT_S ends such waits");
  EXPECT_EQ(text(FailureKind::CopyFailed, OperationName::Quiet),
            "a kernel ended in quiet (block 3): a copy between this GPU and host memory has failed "
            "(see the error before), so what the kernel waited for cannot come");
  EXPECT_EQ(text(FailureKind::CommandRefused, OperationName::MoeDispatch),
            "a kernel ended in a dispatch of weft.moe (block 3): a command of this GPU has been "
            "refused (see the error before), so what the kernel waited for cannot come");
  EXPECT_EQ(
      text(FailureKind::RankMissing, OperationName::MoeCombine),
      "a kernel ended in a combine of weft.moe (block 3): nothing came from PE -1 to call 5 in "
      "time, and in a graph its exchange ends kernels then (on_timeout \"error\"); look at what "
      "that PE does, or raise the timeout");
  EXPECT_EQ(text(FailureKind::NotCooperative, OperationName::Reduce),
            "a kernel ended in reduce (block 3): a call of grid scope in a kernel of 5 blocks that "
            "was not launched cooperatively; launch it with weft::device::launch_collective, or "
            "cudaLaunchCooperativeKernel");
  EXPECT_EQ(text(FailureKind::TooManyMembers, OperationName::Reduce),
            "a kernel ended in reduce (block 3): the team has 5 members, some of them on other "
            "nodes, too many for a reduction in a kernel; reduce on a stream, or in smaller teams");
  EXPECT_EQ(
      text(FailureKind::SegmentNotSymmetric, OperationName::Putv),
      "a kernel ended in putv (block 3): segment 4 of the list, 5 bytes to 0x1000 of PE -1, is "
      "not in the symmetric device heap; use memory from weft_device_malloc");
  EXPECT_EQ(
      text(FailureKind::SegmentNotGlobal, OperationName::PutvSignal),
      "a kernel ended in putv_signal (block 3): segment 4 of the list, 5 bytes for PE -1, on "
      "another node, lies in shared or local memory at 0x1000; longer ones than 480 bytes must "
      "be in global memory");
}

TEST(DescribeWait, NamesThePeIfOneIsAwaitedAndTheWordIfThereIsOne) {
  FailureRecord wait = record_of(FailureKind::None, OperationName::Sync);
  wait.pe = 7;
  wait.address = 0;
  EXPECT_EQ(runtime::describe_wait(wait),
            "a kernel has been waiting in sync (block 3, for PE 7) for 12 s");
}

std::size_t count(const std::string& text, std::string_view part) {
  std::size_t found = 0;
  for (std::size_t at = text.find(part); at != std::string::npos; at = text.find(part, at + 1)) {
    ++found;
  }
  return found;
}

class Watched : public ::testing::Test {
 protected:
  Watched() { ::testing::internal::CaptureStderr(); }

  // What was logged within a few of the watch's periods; once.
  static std::string logged() {
    std::this_thread::sleep_for(std::chrono::milliseconds(300));
    return ::testing::internal::GetCapturedStderr();
  }

  [[nodiscard]] std::uint32_t ended() {
    return AtomicRef(ended_).load(std::memory_order_relaxed);  // relaxed: as below
  }

  void fail(FailureKind kind, OperationName operation) {
    const FailureRecord record = record_of(FailureKind::None, operation);
    page_.failure.operation = record.operation;
    page_.failure.block = record.block;
    page_.failure.address = record.address;
    page_.failure.expected = record.expected;
    page_.failure.seen = record.seen;
    page_.failure.waited_ms = record.waited_ms;
    // SYNC failure-record (pairs with src/runtime/device/watch.cpp): written last, as by a kernel.
    AtomicRef(page_.failure.kind)
        .store(static_cast<std::uint32_t>(kind), std::memory_order_release);
  }

  KernelPage page_;
  std::uint64_t pass_ns_ = 0;
  std::uint32_t ended_ = 0;
  DeviceWatch watch_{page_, [] { return std::optional<Pe>(); },
                     // relaxed: the tests only wait for the number
                     [this] { AtomicRef(ended_).fetch_add(1, std::memory_order_relaxed); },
                     pass_ns_};
};

TEST_F(Watched, AReportOfAWaitIsLoggedOnceAndEndsNothing) {
  page_.waiting.wait = record_of(FailureKind::None, OperationName::WaitUntil);
  // SYNC wait-record (pairs with src/runtime/device/watch.cpp): written last, as by a kernel.
  AtomicRef(page_.waiting.number).store(1, std::memory_order_release);
  EXPECT_EQ(count(logged(), "a kernel has been waiting in wait_until (block 3)"), 1U);
  EXPECT_EQ(ended(), 0U);
  EXPECT_FALSE(watch_.failure());
}

TEST_F(Watched, AWaitThatTimedOutEndsTheJob) {
  fail(FailureKind::TimedOut, OperationName::WaitUntil);
  EXPECT_TRUE(soon([&] { return ended() == 1; }));
  EXPECT_EQ(watch_.failure_status(), Status::Timeout);
  EXPECT_EQ(count(logged(), "WEFT_TIMEOUT_S ends such waits"), 1U);
}

TEST_F(Watched, AnotherFailureIsLoggedAndLeavesTheJobAlone) {
  fail(FailureKind::NotCooperative, OperationName::Sync);
  EXPECT_EQ(count(logged(), "not launched cooperatively"), 1U);
  EXPECT_EQ(ended(), 0U);
  EXPECT_EQ(watch_.failure_status(), Status::InvalidArgument);
}

TEST_F(Watched, AFailedCopyEndsKernelsThatWait) {
  watch_.give_up(FailureKind::CopyFailed, "copying 4096 bytes from 0x10 failed: invalid argument");
  EXPECT_EQ(count(logged(), "copying 4096 bytes from 0x10 failed: invalid argument"), 1U);
  // SYNC device-abort (pairs with src/runtime/device/watch.cpp): as a kernel reads it.
  EXPECT_EQ(AtomicRef(page_.abort.kind).load(std::memory_order_acquire),
            static_cast<std::uint32_t>(FailureKind::CopyFailed));
}

TEST_F(Watched, ARefusedCommandEndsThemToo) {
  EXPECT_EQ(watch_.failure_status(), Status::Ok);
  for (int i = 0; i < 3; ++i) {  // a faulty kernel repeats its error
    watch_.give_up(FailureKind::CommandRefused, "a command (3) to PE 1 failed: invalid argument");
  }
  EXPECT_EQ(count(logged(), "a command (3) to PE 1 failed: invalid argument"), 1U);
  // SYNC device-abort (pairs with src/runtime/device/watch.cpp): as a kernel reads it.
  EXPECT_EQ(AtomicRef(page_.abort.kind).load(std::memory_order_acquire),
            static_cast<std::uint32_t>(FailureKind::CommandRefused));
  // Also if no kernel waited for it.
  EXPECT_EQ(watch_.failure(), "a command (3) to PE 1 failed: invalid argument");
  EXPECT_EQ(watch_.failure_status(), Status::InvalidArgument);
}

TEST_F(Watched, ALostPeerIsToldOnceAndNotForEachCommand) {
  watch_.note_failed(Pe(3), device::CommandKind::Nop, Status::PeerLost);
  for (int i = 0; i < 100; ++i) {
    watch_.note_failed(Pe(3), device::CommandKind::Put, Status::PeerLost);
  }
  const std::string said = logged();
  EXPECT_EQ(count(said, "PE 3 is lost"), 1U) << said;
  EXPECT_EQ(count(said, "\n"), 1U) << said;
  EXPECT_EQ(watch_.failure_status(), Status::Ok) << "the watch ends kernels itself";
}

// A file of device code that was compiled with other numbers must be refused: raise kLayoutVersion
// when one changes.
TEST(DeviceLayout, AChangeOfSizesIsAnotherVersion) {
  EXPECT_EQ(device::kLayoutVersion, 11U);
  EXPECT_EQ(sizeof(device::HotState), 88U);
  EXPECT_EQ(sizeof(device::DeviceState), 192U);
  EXPECT_EQ(sizeof(device::TeamState), 40U);
  EXPECT_EQ(sizeof(device::RingView), 24U);
  EXPECT_EQ(sizeof(device::FailureRecord), 48U);
  EXPECT_EQ(sizeof(device::WaitRecord), 56U);
  EXPECT_EQ(sizeof(device::CommandSlot), 64U);
  EXPECT_EQ(device::kLayout >> 32U, device::kLayoutVersion);
}

}  // namespace
}  // namespace weft::test
