// How rails take memory of GPUs, asked of libfabric itself; the memory is the host's.
#include <gtest/gtest.h>

#include <algorithm>
#include <cstdlib>
#include <cstring>
#include <memory>
#include <utility>
#include <vector>

#include <gmock/gmock.h>

#include "src/base/config.hpp"
#include "src/base/error.hpp"
#include "src/fabric/discovery.hpp"
#include "src/fabric/libfabric.hpp"
#include "src/fabric/native_info.hpp"

namespace weft::fabric {
namespace {

using ::testing::HasSubstr;

Config config_with(const std::string& provider) {
  Config config = load_config([](std::string_view) { return std::nullopt; });
  config.provider = provider;
  config.nics = "127.0.0.1";
  return config;
}

TEST(DeviceRegion, AProviderThatCopiesTakesNoGpuMemoryAndSaysSo) {
  std::vector<std::byte> memory(4096);
  const std::vector<NicInfo> nics =
      discover(config_with("tcp;ofi_rxm"), {.device = DeviceUse::ByNic});
  ASSERT_FALSE(nics.empty());
  const auto rail = open_rail(nics.front());
  const DeviceRegion region = rail->add_device_region({.memory = memory, .gpu = 0});
  EXPECT_EQ(region.way, DeviceWay::None);
  EXPECT_THAT(region.why, HasSubstr("it copies"));
}

TEST(DeviceRegion, HostMemoryThatStandsForAGpusIsTakenByTheInterface) {
  std::vector<std::byte> memory(4096);
  const std::vector<NicInfo> nics = discover(config_with("auto"));
  ASSERT_FALSE(nics.empty());
  const auto rail = open_rail(nics.front());
  const DeviceRegion region =
      rail->add_device_region({.memory = memory, .no_dma_buf = "it is the host's"});
  EXPECT_EQ(region.way, DeviceWay::Interface);
  EXPECT_THAT(region.why, HasSubstr("it is the host's"));
  rail->drop_region(memory);
}

TEST(DeviceRegion, ANicThatDoesNotOpenWithFiHmemIsUsedWithoutIt) {
  NicInfo nic = discover(config_with("auto")).front();
  nic.without_device = nic.native;
  InfoHandle broken(libfabric().dupinfo(nic.native->info.get()));
  std::free(std::exchange(broken->fabric_attr->prov_name, ::strdup("nobody")));
  nic.native = std::make_shared<const NativeInfo>(NativeInfo{std::move(broken)});
  EXPECT_NE(open_rail(nic), nullptr);
  nic.without_device = nullptr;
  EXPECT_THROW(open_rail(nic), Error);
}

// The one provider of a plain libfabric that offers FI_HMEM.
TEST(DeviceRegion, ShmIsOpenedWithFiHmemAndRegistersByIt) {
  require_libfabric({});
  const std::vector<std::string> offered = available_providers();
  if (std::ranges::find(offered, "shm") == offered.end()) {
    GTEST_SKIP() << "this libfabric has no provider shm";
  }
  std::vector<std::byte> memory(1U << 20U);
  const std::vector<NicInfo> nics = discover(config_with("shm"), {.device = DeviceUse::Always});
  ASSERT_FALSE(nics.empty());
  const auto plain = open_rail(discover(config_with("shm")).front());
  const auto rail = open_rail(nics.front());
  // With FI_HMEM it injects nothing, since its CPU might not reach the memory.
  EXPECT_GT(plain->limits().inject_bytes, rail->limits().inject_bytes);
  EXPECT_EQ(rail->add_device_region({.memory = memory}).way, DeviceWay::Interface);
}

}  // namespace
}  // namespace weft::fabric
