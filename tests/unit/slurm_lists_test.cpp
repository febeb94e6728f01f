// What Slurm writes short: names of hosts, and tasks of each.
#include "src/bootstrap/slurm_lists.hpp"

#include <functional>
#include <string>

#include <fmt/format.h>
#include <fmt/ranges.h>
#include <gmock/gmock.h>

#include "src/base/error.hpp"

namespace weft::bootstrap {
namespace {

using testing::ElementsAre;
using testing::HasSubstr;

std::string refusal(const std::function<void()>& function) {
  try {
    function();
  } catch (const Error& error) {
    return error.what();
  }
  return "accepted";
}

TEST(HostList, IsExpandedInItsOrder) {
  const auto expanded = [](std::string_view text) {
    return fmt::format("{}", fmt::join(expand_host_list(text), " "));
  };
  EXPECT_EQ(expanded("h0"), "h0");
  EXPECT_EQ(expanded("h[2,0-1]"), "h2 h0 h1");
  EXPECT_EQ(expanded("login,n[008-011]"), "login n008 n009 n010 n011");
  EXPECT_EQ(expanded("r[1-2]n[01-02]-ib,x"), "r1n01-ib r1n02-ib r2n01-ib r2n02-ib x");
}

TEST(HostList, RefusesWhatIsNone) {
  for (const char* text : {"", ",", "h[", "h[]", "h[1", "h[2-1]", "h[a]", "h[0-99999999]",
                           "-oProxy", "a,,b", "h[1-]", "h[-1]"}) {
    EXPECT_THAT(refusal([&] { static_cast<void>(expand_host_list(text)); }),
                HasSubstr("is not a list of hosts"))
        << text;
  }
}

TEST(TasksPerNode, AreReadAsSlurmWritesThem) {
  EXPECT_THAT(expand_tasks_per_node("4"), ElementsAre(4));
  EXPECT_THAT(expand_tasks_per_node("2(x3)"), ElementsAre(2, 2, 2));
  EXPECT_THAT(expand_tasks_per_node("2(x2),1"), ElementsAre(2, 2, 1));
  EXPECT_THAT(expand_tasks_per_node("3,1(x2),8"), ElementsAre(3, 1, 1, 8));
}

TEST(TasksPerNode, OtherTextIsRefusedWithTheWayOut) {
  for (const char* text :
       {"", "x", "2(x", "2(x0)", "0", "2,", "2;3", "2(x3", "99999999999", "1(x9999999)"}) {
    EXPECT_THAT(refusal([&] { static_cast<void>(expand_tasks_per_node(text)); }), HasSubstr("-n"))
        << text;
  }
}

}  // namespace
}  // namespace weft::bootstrap
