// Which host of a job gets how many PEs.
#include <gmock/gmock.h>

#include "src/base/error.hpp"
#include "tools/run/placement.hpp"

namespace weft::run {
namespace {

using ::testing::ElementsAre;

TEST(Placement, HostsWithCountsTakeThemAndTheOthersShareTheRest) {
  const std::vector<Host> hosts{{.name = "a", .slot_count = 1}, {.name = "b"}, {.name = "c"}};
  EXPECT_THAT(place(hosts, 5, 0), ElementsAre(1, 2, 2));
  EXPECT_THAT(place(hosts, 4, 2), ElementsAre(1, 2, 1));
  EXPECT_THROW(static_cast<void>(place(hosts, 6, 2)), Error);
}

}  // namespace
}  // namespace weft::run
