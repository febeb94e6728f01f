// How long the calls of an exchange wait: the program's own time, the variable's, and the defaults.
#include <gtest/gtest.h>

#include <cstdlib>

#include "moe/src/plan/timeouts.hpp"

namespace weft::moe::engine {
namespace {

class MoeTimeouts : public testing::Test {
 protected:
  void SetUp() override { unsetenv("WEFT_MOE_TIMEOUT"); }

  void TearDown() override { unsetenv("WEFT_MOE_TIMEOUT"); }
};

double of(Timeouts& timeouts, weft_moe_step step) {
  timeouts.begin(step);
  return timeouts.seconds();
}

TEST_F(MoeTimeouts, TheFirstCallOfEachStepMayTakeHalfAnHour) {
  Timeouts timeouts(weft_moe_config{});
  EXPECT_EQ(of(timeouts, WEFT_MOE_COMBINE), 1800);
  EXPECT_EQ(of(timeouts, WEFT_MOE_DISPATCH), 1800);
  timeouts.completed();
  EXPECT_EQ(of(timeouts, WEFT_MOE_DISPATCH), 100);
  EXPECT_EQ(timeouts.nanoseconds(), 100'000'000'000);
  EXPECT_EQ(of(timeouts, WEFT_MOE_COMBINE), 1800) << "experts are compiled between the two";
  timeouts.completed();
  EXPECT_EQ(of(timeouts, WEFT_MOE_COMBINE), 100);
  EXPECT_EQ(timeouts.of_call(1), 1800);
  EXPECT_EQ(timeouts.of_call(2), 100);
}

TEST_F(MoeTimeouts, TheVariableHoldsForAllCalls) {
  setenv("WEFT_MOE_TIMEOUT", "7", 1);
  Timeouts timeouts(weft_moe_config{});
  EXPECT_EQ(of(timeouts, WEFT_MOE_COMBINE), 7);
  timeouts.completed();
  EXPECT_EQ(of(timeouts, WEFT_MOE_COMBINE), 7);
}

TEST_F(MoeTimeouts, WhatTheProgramGivesGoesBeforeTheVariable) {
  setenv("WEFT_MOE_TIMEOUT", "7", 1);
  weft_moe_config config{};
  config.timeout_s = 0.5;
  Timeouts timeouts(config);
  EXPECT_EQ(of(timeouts, WEFT_MOE_DISPATCH), 0.5);
}

}  // namespace
}  // namespace weft::moe::engine
