// Which host of a job gets how many PEs.
#include <gmock/gmock.h>

#include "src/base/error.hpp"
#include "tools/run/placement.hpp"

namespace weft::run {
namespace {

using ::testing::ElementsAre;

TEST(TasksPerNode, AreReadAsSlurmWritesThem) {
  EXPECT_THAT(parse_tasks_per_node("4"), ElementsAre(4));
  EXPECT_THAT(parse_tasks_per_node("2(x3)"), ElementsAre(2, 2, 2));
  EXPECT_THAT(parse_tasks_per_node("2(x2),1"), ElementsAre(2, 2, 1));
  EXPECT_THAT(parse_tasks_per_node("3,1(x2),8"), ElementsAre(3, 1, 1, 8));
}

TEST(TasksPerNode, OtherTextIsRefusedWithTheWayOut) {
  for (const char* text :
       {"", "x", "2(x", "2(x0)", "0", "2,", "2;3", "2(x3", "99999999999", "1(x9999999)"}) {
    try {
      static_cast<void>(parse_tasks_per_node(text));
      ADD_FAILURE() << "accepted: " << text;
    } catch (const Error& error) {
      EXPECT_THAT(error.what(), testing::HasSubstr("-n")) << text;
    }
  }
}

TEST(Placement, HostsWithCountsTakeThemAndTheOthersShareTheRest) {
  const std::vector<Host> hosts{{.name = "a", .slot_count = 1}, {.name = "b"}, {.name = "c"}};
  EXPECT_THAT(place(hosts, 5, 0), ElementsAre(1, 2, 2));
  EXPECT_THAT(place(hosts, 4, 2), ElementsAre(1, 2, 1));
  EXPECT_THROW(static_cast<void>(place(hosts, 6, 2)), Error);
}

}  // namespace
}  // namespace weft::run
