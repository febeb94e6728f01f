// What a model test expects of a program.
#pragma once

#include <gtest/gtest.h>

#include <algorithm>
#include <string>
#include <vector>

#include "tests/model/explorer.hpp"

namespace weft::model {

// Nothing that must not happen can happen, in any order and with any value that the memory may
// return.
inline void expect_no_violation(const Program& program) {
  const Outcome outcome = explore(program);
  EXPECT_EQ(outcome.violation, "");
  EXPECT_TRUE(outcome.is_complete) << outcome.states << " states";
  EXPECT_EQ(outcome.given_up, 0U) << "executions longer than steps_max";
  ::testing::Test::RecordProperty("states", std::to_string(outcome.states));
}

inline void expect_violation(const Program& program) {
  EXPECT_NE(explore(program).violation, "");
}

// Each order of the code that could be weaker has to be as strong as it is, but for those listed,
// each with a reason.
inline void expect_noticed(const Program& program, std::vector<std::string> unneeded) {
  std::vector<std::string> unnoticed = unnoticed_weakenings(program);
  std::ranges::sort(unnoticed);
  std::ranges::sort(unneeded);
  EXPECT_EQ(unnoticed, unneeded);
}

}  // namespace weft::model
