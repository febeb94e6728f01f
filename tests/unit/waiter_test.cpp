// Waiting: short waits, long ones that report, and waits for those who will never come.
#include "src/rma/waiter.hpp"

#include <gtest/gtest.h>

#include <algorithm>
#include <array>
#include <string>
#include <thread>
#include <vector>

#include <gmock/gmock.h>

#include "src/base/atomic.hpp"
#include "src/base/clock.hpp"
#include "src/rma/yields.hpp"

namespace weft::rma {
namespace {

constexpr WaitPolicy kQuick{.spin_us = 10, .yield_us = 10, .sleep_us = 100, .report_ms = 20};

constexpr auto kNobody = [] { return std::string("waiting for nobody"); };

constexpr std::uint64_t kStart = 1'000'000'000;

// How long waits do without yields after one that took `took_ns`, from `before_ns` on.
std::uint64_t pause_after(Yields& yields, std::uint64_t before_ns, std::uint64_t took_ns) {
  const std::uint64_t after = before_ns + took_ns;
  yields.note(before_ns, after);
  std::uint64_t pause = 0;
  for (std::uint64_t step = std::uint64_t{1} << 30; step > 0; step /= 2) {
    pause += yields.is_worth(after + pause + step) ? 0 : step;
  }
  return yields.is_worth(after) ? 0 : pause + 1;
}

TEST(Yields, PauseForTwiceAsLongAsASlowOneTook) {
  Yields yields;
  EXPECT_TRUE(yields.is_worth(kStart));
  EXPECT_EQ(pause_after(yields, kStart, Yields::kSlowNs), 0U);
  EXPECT_EQ(pause_after(yields, kStart, Yields::kSlowNs + 1), 2 * Yields::kSlowNs + 2);
}

TEST(Yields, PauseLongerWhereTheyStaySlow) {
  Yields yields;
  constexpr std::uint64_t kSliceNs = 3'000'000;
  std::uint64_t now = kStart;
  for (const std::uint64_t slices : {2U, 4U, 8U, 16U, 32U}) {
    EXPECT_EQ(pause_after(yields, now, kSliceNs), slices * kSliceNs);
    now += (1 + slices) * kSliceNs;
  }
  EXPECT_EQ(pause_after(yields, now, kSliceNs), Yields::kPauseNsMax);
  now += kSliceNs + Yields::kPauseNsMax;
  EXPECT_EQ(pause_after(yields, now, kSliceNs), Yields::kPauseNsMax);
}

TEST(Yields, PauseBrieflyAgainAfterManyQuickOnes) {
  Yields yields;
  constexpr std::uint64_t kSliceNs = 3'000'000;
  EXPECT_EQ(pause_after(yields, kStart, kSliceNs), 2 * kSliceNs);
  const std::uint64_t resumed = kStart + 3 * kSliceNs;
  EXPECT_EQ(pause_after(yields, resumed + 2 * kSliceNs + 1, kSliceNs), 2 * kSliceNs);
}

TEST(Waiter, ReturnsAtOnceWhatIsDoneAlready) {
  const transport::Routes none(64);
  Waiter waiter(kQuick, none, nullptr);
  int polls = 0;
  EXPECT_EQ(waiter.wait([&] { return ++polls == 1; }, kNobody, {}), Status::Ok);
  EXPECT_EQ(polls, 1);
}

TEST(Waiter, WakesFromItsLongestSleepWhenAnotherThreadIsDone) {
  const transport::Routes none(64);
  Waiter waiter(kQuick, none, nullptr);
  std::uint32_t word = 0;
  const std::jthread other([&] {
    std::this_thread::sleep_for(std::chrono::milliseconds(5));
    // SYNC waiter-test: pairs with the wait below.
    AtomicRef(word).store(1, std::memory_order_release);
  });
  // SYNC waiter-test: pairs with the store above.
  const auto done = [&] { return AtomicRef(word).load(std::memory_order_acquire) == 1; };
  EXPECT_EQ(waiter.wait(done, kNobody, {}), Status::Ok);
}

TEST(Waiter, SaysForWhomItWaitsAndDoublesThePeriod) {
  const transport::Routes none(64);
  Waiter waiter(kQuick, none, nullptr);
  const std::uint64_t start_ns = now_ns();
  ::testing::internal::CaptureStderr();
  const Status status =
      waiter.wait([&] { return now_ns() > start_ns + 150'000'000; },
                  [] { return std::string("waiting for PE 3 in barrier_all"); }, {});
  const std::string text = ::testing::internal::GetCapturedStderr();
  EXPECT_EQ(status, Status::Ok);
  EXPECT_THAT(text, ::testing::HasSubstr("waiting for PE 3 in barrier_all for 0 s"));
  EXPECT_LE(std::count(text.begin(), text.end(), '\n'), 3);
}

TEST(Waiter, GivesUpAfterItsTimeoutAndSaysWhatForOnce) {
  const transport::Routes none(64);
  std::vector<std::string> told;
  WaitPolicy policy = kQuick;
  policy.timeout_ms = 50;
  Waiter waiter(policy, none, nullptr, nullptr,
                [&](const std::string& what) { told.push_back(what); });
  const Status status = waiter.wait(
      [] { return false; }, [] { return std::string("waiting for PE 3 in barrier_all"); }, {});
  EXPECT_EQ(status, Status::Timeout);
  EXPECT_EQ(told, std::vector<std::string>{"waiting for PE 3 in barrier_all"});
}

// Data moves to and from PE 0 until `moves_for_ns` after the start.
class Mover final : public transport::Transport {
 public:
  explicit Mover(std::uint64_t moves_for_ns) : end_ns_(now_ns() + moves_for_ns) {}

  [[nodiscard]] bootstrap::Blob describe() const override { return {}; }

  void connect(const std::vector<bootstrap::Blob>& /*data*/,
               const std::vector<bool>& /*reached*/) override {}

  [[nodiscard]] bootstrap::Blob add_region(RegionIndex /*index*/,
                                           std::span<std::byte> /*memory*/) override {
    return {};
  }

  void connect_region(RegionIndex /*index*/,
                      const std::vector<bootstrap::Blob>& /*data*/) override {}

  void remove_region(RegionIndex /*index*/) override {}

  Status post(const transport::Operation& /*operation*/) noexcept override { return Status::Ok; }

  void flush(Pe /*peer*/) noexcept override {}

  bool progress() noexcept override { return false; }

  bool wait_for_event(std::uint32_t timeout_us) noexcept override {
    std::this_thread::sleep_for(std::chrono::microseconds(timeout_us));
    return false;
  }

  [[nodiscard]] std::uint64_t moved(Pe /*peer*/) const noexcept override {
    return std::min(now_ns(), end_ns_);
  }

  [[nodiscard]] Status peer_status(Pe /*peer*/) const noexcept override { return Status::Ok; }

 private:
  std::uint64_t end_ns_;
};

// What a wait of this long, during which data moves for so long, prints.
std::string report_of(std::uint64_t wait_ms, std::uint64_t moves_for_ms, std::uint32_t report_ms) {
  Mover mover(moves_for_ms * 1'000'000);
  transport::Routes routes(1);
  routes.add(mover, {true});
  WaitPolicy policy = kQuick;
  policy.report_ms = report_ms;
  Waiter waiter(policy, routes, nullptr);
  const std::uint64_t start_ns = now_ns();
  ::testing::internal::CaptureStderr();
  EXPECT_EQ(waiter.wait_for_transfer([&] { return now_ns() > start_ns + wait_ms * 1'000'000; },
                                     kNobody, Pe(0)),
            Status::Ok);
  return ::testing::internal::GetCapturedStderr();
}

TEST(Waiter, DoesNotReportATransferThatMoves) {
  EXPECT_EQ(report_of(1500, 1500, 500), "");
}

TEST(Waiter, ReportsATransferThatHasStopped) {
  EXPECT_THAT(report_of(1500, 200, 500), ::testing::HasSubstr("waiting for nobody for "));
}

// What moves may be something else, while what is waited for never comes.
TEST(Waiter, ReportsAlsoWhileDataMovesIfThatLastsLong) {
  EXPECT_THAT(report_of(1500, 1500, 100), ::testing::HasSubstr(" s, while data moves; "));
}

TEST(Waiter, ADeadPeEndsTheWaitForIt) {
  const transport::Routes none(64);
  Waiter waiter(kQuick, none, [](Pe pe) { return pe == Pe(40); });
  std::array<Pe, 50> all{};
  for (std::uint32_t pe = 0; pe < all.size(); ++pe) {
    all[pe] = Pe(pe);
  }
  EXPECT_EQ(waiter.wait([] { return false; }, kNobody, all), Status::PeerLost);
}

TEST(Waiter, WhatIsDoneCountsAlsoIfThePeDiedAfterwards) {
  const std::array<Pe, 1> awaited{Pe(1)};
  bool is_dead = false;
  const transport::Routes none(64);
  Waiter waiter(kQuick, none, [&](Pe) { return is_dead = true; });
  EXPECT_EQ(waiter.wait([&] { return is_dead; }, kNobody, awaited), Status::Ok);
}

TEST(Waiter, DoesNotSpinWherePesOutnumberTheCores) {
  EXPECT_EQ(oversubscribed({}, 2, 2).spin_us, WaitPolicy{}.spin_us);
  EXPECT_EQ(oversubscribed({}, 3, 2).spin_us, 0U);
  EXPECT_GT(oversubscribed({}, 256, 2).sleep_us, WaitPolicy{}.sleep_us);
}

}  // namespace
}  // namespace weft::rma
