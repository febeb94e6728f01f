// Which provider "auto" takes of those that libfabric offers.
#include <gtest/gtest.h>

#include <string>
#include <vector>

#include "src/fabric/quirks.hpp"

namespace weft::fabric {
namespace {

using Names = std::vector<std::string>;

TEST(ProviderQuirks, ClusterNetworksComeBeforeTcpInAnyOrder) {
  for (const std::string nic : {"efa", "cxi", "verbs;ofi_rxm", "psm3", "opx"}) {
    EXPECT_EQ(best_provider(Names{"shm", "tcp", "tcp;ofi_rxm", "net", "sockets", nic}), nic);
    EXPECT_EQ(best_provider(Names{nic, "sockets", "net", "tcp;ofi_rxm", "tcp", "shm"}), nic);
  }
}

TEST(ProviderQuirks, OfTcpsKindsTheNativeOneIsTaken) {
  EXPECT_EQ(best_provider(Names{"udp", "sockets", "net", "tcp;ofi_rxm", "tcp"}), "tcp");
  EXPECT_EQ(best_provider(Names{"sockets", "net", "tcp;ofi_rxm"}), "tcp;ofi_rxm");
}

TEST(ProviderQuirks, AnUnknownProviderIsBetterThanNone) {
  EXPECT_EQ(best_provider(Names{"shm", "nobody's"}), "nobody's");
  EXPECT_EQ(best_provider(Names{"shm", "udp"}), "");
  EXPECT_EQ(best_provider({}), "");
}

}  // namespace
}  // namespace weft::fabric
