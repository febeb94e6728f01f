// NVSHMEM's variables become Weft's settings, and those without meaning are named and harmless.
#include <gtest/gtest.h>

#include <string>
#include <utility>
#include <vector>

#include <gmock/gmock.h>

#include "src/nvshmem/environment.hpp"

namespace weft::nvshmem {
namespace {

using testing::ElementsAre;
using testing::IsEmpty;
using testing::Pair;

constexpr std::uint64_t kMi = std::uint64_t{1} << 20U;

TEST(NvshmemSize, IsANumberAndOneMultiplier) {
  EXPECT_EQ(parse_size("1073741824"), 1024 * kMi);
  EXPECT_EQ(parse_size("20m"), 20 * kMi);
  EXPECT_EQ(parse_size("3.1M"), 3250586U);  // as the documentation says
  EXPECT_EQ(parse_size(".5m"), kMi / 2);
  EXPECT_EQ(parse_size("0.5m"), kMi / 2);
  EXPECT_EQ(parse_size("20kk"), 20U * 1024);  // what follows the multiplier is ignored
  EXPECT_EQ(parse_size("1gb"), 1024 * kMi);
  EXPECT_EQ(parse_size("1T"), 1024 * 1024 * kMi);
  EXPECT_EQ(parse_size("1.2"), 2U);  // the integer above
  EXPECT_EQ(parse_size("0"), 0U);
}

TEST(NvshmemSize, IsNothingElse) {
  for (const char* text : {"", "m", "large", "-1", "12x", "9999999999T"}) {
    EXPECT_EQ(parse_size(text), std::nullopt) << text;
  }
}

TEST(NvshmemEnvironment, IsEmptyWithoutVariables) {
  const Environment made = read_environment({"PATH=/bin", "WEFT_LOG=info"});
  EXPECT_THAT(made.settings, IsEmpty());
  EXPECT_THAT(made.ignored, IsEmpty());
  EXPECT_FALSE(made.is_on_host);
  EXPECT_EQ(made.error, "");
}

TEST(NvshmemEnvironment, BecomesWeftsSettings) {
  EXPECT_THAT(
      read_environment({"NVSHMEM_SYMMETRIC_SIZE=2g", "NVSHMEM_DISABLE_CUDA_VMM=1"}).settings,
      ElementsAre(Pair("WEFT_DEVICE_HEAP_SIZE", "2147483648"), Pair("WEFT_DEVICE_HEAP_MAX", "0")));
  EXPECT_THAT(
      read_environment({"NVSHMEM_MAX_MEMORY_PER_GPU=1g", "NVSHMEM_DISABLE_P2P=true",
                        "NVSHMEM_LIBFABRIC_PROVIDER=efa", "NVSHMEM_LIBFABRIC_MAX_NIC_PER_PE=4",
                        "NVSHMEM_DEBUG=INFO", "NVSHMEM_BOOTSTRAP_PMI=PMIX"})
          .settings,
      ElementsAre(Pair("WEFT_DEVICE_HEAP_MAX", "1073741824"), Pair("WEFT_NODE_SIZE", "1"),
                  Pair("WEFT_PROVIDER", "efa"), Pair("WEFT_RAIL_COUNT_MAX", "4"),
                  Pair("WEFT_BOOTSTRAP", "pmix"), Pair("WEFT_LOG", "info")));
  EXPECT_THAT(
      read_environment({"NVSHMEM_DISABLE_P2P=0", "NVSHMEM_DISABLE_CUDA_VMM=false"}).settings,
      IsEmpty());
}

TEST(NvshmemEnvironment, MemoryOfTheHostHasTheSameSize) {
  const Environment made =
      read_environment({"NVSHMEM_HEAP_KIND=SYSMEM", "NVSHMEM_SYMMETRIC_SIZE=8m"});
  EXPECT_TRUE(made.is_on_host);
  EXPECT_THAT(made.settings, ElementsAre(Pair("WEFT_HEAP_SIZE", "8388608")));
  EXPECT_FALSE(read_environment({"NVSHMEM_HEAP_KIND=VIDMEM"}).is_on_host);
}

TEST(NvshmemEnvironment, AWrongSizeIsAnErrorAndNothingElseIs) {
  EXPECT_EQ(read_environment({"NVSHMEM_SYMMETRIC_SIZE=much"}).error,
            "NVSHMEM_SYMMETRIC_SIZE=much is not a size; give a number of bytes, with K, M, G or T");
  const Environment made = read_environment(
      {"NVSHMEM_IB_ENABLE_IBGDA=1", "NVSHMEM_DEBUG=nonsense", "NVSHMEM_BOOTSTRAP=UID"});
  EXPECT_EQ(made.error, "");
  EXPECT_THAT(made.ignored, ElementsAre("NVSHMEM_IB_ENABLE_IBGDA"));
}

TEST(NvshmemEnvironment, WhereIdsAndTheLogGo) {
  EXPECT_THAT(
      read_environment({"NVSHMEM_BOOTSTRAP_UID_SOCK_IFNAME=^docker",
                        "NVSHMEM_BOOTSTRAP_UID_SOCK_FAMILY=AF_INET6",
                        "NVSHMEM_DEBUG_FILE=/tmp/%h.%p"})
          .settings,
      ElementsAre(Pair("WEFT_BOOTSTRAP_INTERFACES", "^docker"),
                  Pair("WEFT_BOOTSTRAP_FAMILY", "ipv6"), Pair("WEFT_LOG_FILE", "/tmp/%h.%p")));
  EXPECT_EQ(read_environment({"NVSHMEM_BOOTSTRAP_UID_SOCK_FAMILY=IPX"}).error,
            "NVSHMEM_BOOTSTRAP_UID_SOCK_FAMILY=IPX is not an address family; use AF_INET or "
            "AF_INET6");
}

TEST(NvshmemEnvironment, ASwitchIsOnUnlessItSaysNo) {
  EXPECT_TRUE(read_environment({"NVSHMEM_INFO=1", "NVSHMEM_VERSION=yes"}).says_settings);
  EXPECT_TRUE(read_environment({"NVSHMEM_VERSION=TRUE"}).says_version);
  EXPECT_FALSE(read_environment({"NVSHMEM_INFO=0"}).says_settings);
  EXPECT_TRUE(read_environment({"NVSHMEM_BOOTSTRAP=mpi"}).by_mpi);
}

}  // namespace
}  // namespace weft::nvshmem
