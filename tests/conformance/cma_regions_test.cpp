// Regions of the cma transport that come and go while operations run.
#include <gtest/gtest.h>

#include <algorithm>
#include <thread>

#include "src/base/error.hpp"
#include "tests/conformance/cma_pes.hpp"

namespace weft::test {
namespace {

using namespace transport;

constexpr std::size_t kBytes = 8192;
constexpr RegionIndex kWindow(3);

class CmaRegions : public ::testing::TestWithParam<cma::SlotPath> {
 protected:
  [[nodiscard]] Operation get(RegionIndex region, std::span<std::byte> dest) {
    return {.kind = OperationKind::Get,
            .peer = Pe(1),
            .remote = {.region = region, .offset = HeapOffset(0)},
            .local = dest.data(),
            .bytes = dest.size(),
            .update = {},
            .counter = &counter_};
  }

  // PE 1's part is `window`; PE 0 has none of its own that is read.
  void add(std::vector<std::byte>& window) {
    std::vector<bootstrap::Blob> region_data;
    for (std::uint32_t pe = 0; pe < 2; ++pe) {
      region_data.push_back(pes_.transport(Pe(pe)).add_region(kWindow, window));
    }
    for (std::uint32_t pe = 0; pe < 2; ++pe) {
      pes_.transport(Pe(pe)).connect_region(kWindow, region_data);
    }
  }

  void remove() {
    pes_.transport(Pe(0)).remove_region(kWindow);
    pes_.transport(Pe(1)).remove_region(kWindow);
  }

  void complete() {
    pes_.transport(Pe(0)).flush(Pe(1));
    while (!counter_.is_idle()) {
      pes_.transport(Pe(1)).progress();
      pes_.transport(Pe(0)).progress();
    }
    ASSERT_FALSE(counter_.has_failed());
  }

  CmaPes pes_{2, kBytes, {.slot_path = GetParam(), .is_dead = {}}};
  OperationCounter counter_;
};

TEST_P(CmaRegions, AreRefusedBeforeTheyComeAndAfterTheyWentAndServedInBetween) {
  Transport& me = pes_.transport(Pe(0));
  std::vector<std::byte> dest(kBytes);
  for (int round = 1; round < 4; ++round) {
    EXPECT_EQ(me.post(get(kWindow, dest)), Status::InvalidArgument);
    std::vector<std::byte> window(kBytes, static_cast<std::byte>(round));
    add(window);
    EXPECT_EQ(me.post(get(kWindow, dest)), Status::Ok);
    complete();
    EXPECT_EQ(dest, window);
    remove();
  }
  EXPECT_EQ(me.post(get(kWindow, dest)), Status::InvalidArgument);
  EXPECT_THROW(static_cast<void>(pes_.transport(Pe(0)).add_region(RegionIndex(100'000), {})),
               Error);
}

TEST_P(CmaRegions, ComeAndGoWhileOperationsRunOnAnother) {
  std::fill_n(pes_.heap(Pe(1)), kBytes, std::byte{9});
  std::vector<std::byte> window(kBytes);
  std::jthread changing([&](const std::stop_token& stop) {
    while (!stop.stop_requested()) {
      add(window);
      remove();
    }
  });
  std::vector<std::byte> dest(kBytes);
  for (int round = 0; round < 2000; ++round) {
    std::fill(dest.begin(), dest.end(), std::byte{0});
    ASSERT_EQ(pes_.transport(Pe(0)).post(get(RegionIndex(0), dest)), Status::Ok);
    complete();
    ASSERT_EQ(dest.front(), std::byte{9});
    ASSERT_EQ(dest.back(), std::byte{9});
  }
}

INSTANTIATE_TEST_SUITE_P(Paths,
                         CmaRegions,
                         ::testing::Values(cma::SlotPath::Never, cma::SlotPath::Always));

}  // namespace
}  // namespace weft::test
