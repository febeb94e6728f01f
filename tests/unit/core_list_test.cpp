// Lists of cores: what is read, how processes share them, what is refused.
#include "src/topology/core_list.hpp"

#include <gtest/gtest.h>

#include <string>

#include <gmock/gmock.h>
#include <pthread.h>
#include <sched.h>

#include "src/base/error.hpp"

namespace weft::topology {
namespace {

using ::testing::ElementsAre;
using ::testing::HasSubstr;
using ::testing::IsEmpty;

std::string message_of(const auto& call) {
  try {
    call();
  } catch (const Error& error) {
    return error.what();
  }
  return "no error";
}

TEST(CoreList, ReadsNumbersAndRanges) {
  EXPECT_THAT(parse_core_list(""), IsEmpty());
  EXPECT_THAT(parse_core_list("7"), ElementsAre(7));
  EXPECT_THAT(parse_core_list("8,0-3,2"), ElementsAre(0, 1, 2, 3, 8));
}

TEST(CoreList, RefusesWhatIsNone) {
  for (const char* text : {"a", "0x3", "1;2", "3-", "-", "0,5000"}) {
    EXPECT_THAT(message_of([text] { static_cast<void>(parse_core_list(text)); }),
                HasSubstr("is not a list of cores"))
        << text;
  }
}

TEST(CoreList, IsSharedOutInTurn) {
  EXPECT_THAT(share_of_cores({4, 5, 6, 7, 8}, 0, 2), ElementsAre(4, 6, 8));
  EXPECT_THAT(share_of_cores({4, 5, 6, 7, 8}, 1, 2), ElementsAre(5, 7));
  EXPECT_THAT(share_of_cores({4, 5}, 2, 3), ElementsAre(4));
  EXPECT_THAT(share_of_cores({}, 2, 3), IsEmpty());
}

TEST(CoreList, RefusesCoresThatTheProcessMayNotUseAndLeavesTheThreadWhereItWas) {
  cpu_set_t before;
  ASSERT_EQ(::pthread_getaffinity_np(::pthread_self(), sizeof before, &before), 0);
  EXPECT_THAT(message_of([] { check_cores({CPU_SETSIZE - 1}, "WEFT_PROXY_CORES"); }),
              HasSubstr("WEFT_PROXY_CORES names cores on which this process may not run"));
  for (int core = 0; core < CPU_SETSIZE; ++core) {
    if (CPU_ISSET(static_cast<std::size_t>(core), &before)) {
      check_cores({core}, "WEFT_PROXY_CORES");
    }
  }
  cpu_set_t after;
  ASSERT_EQ(::pthread_getaffinity_np(::pthread_self(), sizeof after, &after), 0);
  EXPECT_TRUE(CPU_EQUAL(&before, &after));
}

}  // namespace
}  // namespace weft::topology
