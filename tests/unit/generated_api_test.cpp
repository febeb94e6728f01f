// The checked-in headers of typed functions are those that the tables give.
#include <gtest/gtest.h>

#include <cstdlib>
#include <string>

#include "tests/support/paths.hpp"

namespace {

TEST(GeneratedApi, HeadersAreWhatTheTablesGive) {
  const std::string command = "python3 -B " WEFT_SOURCE_DIR "/scripts/generate_interfaces --check";
  // NOLINTNEXTLINE(concurrency-mt-unsafe): the test runs no other thread.
  EXPECT_EQ(std::system(command.c_str()), 0);
}

}  // namespace
