// A rail whose provider gives its queue no wait object, as EFA up to libfabric 2.2: whoever waits
// looks again and again, and asks nothing that such a queue cannot answer.
#include <gtest/gtest.h>

#include <algorithm>
#include <vector>

#include "src/base/config.hpp"
#include "src/fabric/discovery.hpp"
#include "tests/support/rails_pes.hpp"

namespace weft::test {
namespace {

TEST(BlindRail, IsWaitedForWithoutItsWaitObject) {
  Config config = load_config([](std::string_view) { return std::nullopt; });
  config.nics = "127.0.0.1";
  const auto pes = make_rails_pes(2, 64U << 10U, {}, [&](std::uint32_t) {
    transport::rails::RailsTransport::Rails rails;
    const std::vector<fabric::NicInfo> nics = fabric::discover(config);
    const auto nic = std::ranges::find(nics, "127.0.0.1", &fabric::NicInfo::address);
    rails.push_back(fabric::open_rail(*nic, {.is_blind = true}));
    return rails;
  });
  std::vector<std::byte> source(4096, std::byte{3});
  transport::OperationCounter counter;
  const transport::Operation put{.kind = transport::OperationKind::Put,
                                 .peer = Pe(1),
                                 .remote = {RegionIndex(0), HeapOffset(4096)},
                                 .local = source.data(),
                                 .bytes = source.size(),
                                 .update = {},
                                 .counter = &counter};
  ASSERT_EQ(pes[0]->transport->post(put), Status::Ok);
  EXPECT_TRUE(progress_until(pes, [&] {
    for (const auto& pe : pes) {
      EXPECT_LT(pe->transport->rail(RailIndex(0)).wait_descriptor(), 0);
      pe->transport->wait_for_event(100);
    }
    return counter.is_idle();
  }));
  EXPECT_EQ(pes[1]->memory[4096], std::byte{3});
}

}  // namespace
}  // namespace weft::test
