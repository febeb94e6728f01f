// What wakes a PE that sleeps in a wait or a barrier, and what does not, between processes of one
// node.
#include <gtest/gtest.h>

#include "tests/multi/launch.hpp"

namespace weft::test {
namespace {

void expect_only_what_it_waits_for(const std::string& environment) {
  const Outcome outcome = launch(2, "wakeups_probe", environment);
  EXPECT_EQ(outcome.status, 0) << outcome.text;
  EXPECT_EQ(outcome.text, "wakeups ok\n");
}

TEST(ASleepingPe, IsWokenByWhatItWaitsForAndByNothingElse) {
  expect_only_what_it_waits_for("");
}

TEST(ASleepingPe, IsWokenByWhatItWaitsForWithAllChecks) {
  expect_only_what_it_waits_for("WEFT_CHECK_LEVEL=2");
}

// Where PEs do not spin, sleeps are all there is.
TEST(ASleepingPe, IsWokenByWhatItWaitsForWhereItSleepsAtOnce) {
  expect_only_what_it_waits_for("WEFT_SPIN_US=0");
}

}  // namespace
}  // namespace weft::test
