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

namespace weft::rma {
namespace {

constexpr WaitPolicy kQuick{.spin_us = 10, .yield_us = 10, .sleep_us = 100, .report_ms = 20};

constexpr auto kNobody = [] { return std::string("waiting for nobody"); };

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
