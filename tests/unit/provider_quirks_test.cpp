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

TEST(ProviderQuirks, AddressesAreInsertedEarlyOnlyWhereTheNicOrTheProviderNeedsThat) {
  EXPECT_TRUE(inserts_early("efa", "efa-direct"));
  EXPECT_FALSE(inserts_early("efa", "efa"));
  EXPECT_TRUE(inserts_early("psm3", "any"));
  EXPECT_FALSE(inserts_early("tcp;ofi_rxm", "192.0.2.0/24"));
  EXPECT_FALSE(inserts_early("unknown", ""));
}

}  // namespace
}  // namespace weft::fabric
