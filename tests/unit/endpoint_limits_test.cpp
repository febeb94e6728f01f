// How large a completion queue is asked for, and what happens if that is too much.
#include "src/fabric/endpoint_limits.hpp"

#include <gtest/gtest.h>

#include <cstdlib>
#include <cstring>
#include <utility>
#include <vector>

#include "src/fabric/libfabric.hpp"

namespace weft::fabric {
namespace {

InfoHandle info_with(fi_resource_mgmt management, std::size_t transmit, std::size_t receive) {
  require_libfabric({});
  InfoHandle info(libfabric().dupinfo(nullptr));
  info->domain_attr->resource_mgmt = management;
  info->tx_attr->size = transmit;
  info->rx_attr->size = receive;
  return info;
}

// libfabric 2.6's efa-direct: nobody guards the queue, and an overrun ends the endpoint.
TEST(QueueSize, IsLargeWhereNobodyGuardsTheQueue) {
  const QueueSize guarded = queue_size_for(*info_with(FI_RM_ENABLED, 1024, 1024));
  const QueueSize unguarded = queue_size_for(*info_with(FI_RM_DISABLED, 4096, 8192));
  EXPECT_EQ(guarded.wanted, 4096U);
  EXPECT_GE(unguarded.wanted, 32768U);
  EXPECT_GE(unguarded.least, 12288U) << "what this side posts itself";
  EXPECT_GE(queue_size_for(*info_with(FI_RM_DISABLED, 65536, 65536)).wanted, 131072U);
}

// From libfabric 2.1 on it says FI_RM_ENABLED all the same.
TEST(QueueSize, IsLargeOnEfaDirectWhateverItClaims) {
  const InfoHandle info = info_with(FI_RM_ENABLED, 4096, 8192);
  info->fabric_attr->prov_name = ::strdup("efa");
  info->fabric_attr->name = ::strdup("efa");
  EXPECT_EQ(queue_size_for(*info).wanted, 4096U) << "the provider has a list behind its queue";
  std::free(std::exchange(info->fabric_attr->name, ::strdup("efa-direct")));
  EXPECT_EQ(queue_size_for(*info).wanted, 32768U);
  EXPECT_EQ(queue_size_for(*info).least, 12288U);
}

TEST(QueueSize, IsTheProvidersOwnOnSlingshotWhichAnswersAgainBeforeItIsFull) {
  const InfoHandle info = info_with(FI_RM_ENABLED, 1024, 1024);
  info->fabric_attr->prov_name = ::strdup("cxi");
  EXPECT_EQ(queue_size_for(*info).wanted, 131072U);
}

TEST(QueueSize, IsHalvedUntilTheProviderTakesIt) {
  std::vector<std::size_t> tried;
  const auto open_up_to = [&](std::size_t most) {
    tried.clear();
    return [&tried, most](std::size_t entries) {
      tried.push_back(entries);
      return entries <= most ? 0 : -FI_EINVAL;
    };
  };
  EXPECT_EQ(open_largest({.wanted = 32768, .least = 5000}, open_up_to(10'000)), 0);
  EXPECT_EQ(tried, (std::vector<std::size_t>{32768, 16384, 8192}));
  EXPECT_EQ(open_largest({.wanted = 32768, .least = 5000}, open_up_to(6000)), 0);
  EXPECT_EQ(tried.back(), 5000U) << "never below what is needed";
  EXPECT_EQ(open_largest({.wanted = 32768, .least = 5000}, open_up_to(100)), -FI_EINVAL);
}

}  // namespace
}  // namespace weft::fabric
