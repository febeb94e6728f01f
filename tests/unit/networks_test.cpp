// Addresses and networks as text.
#include "src/base/networks.hpp"

#include <algorithm>
#include <string>

#include <gmock/gmock.h>

namespace weft {
namespace {

bool contains(const std::string& network, const std::string& address) {
  return Network::parse(network).value().contains(address);
}

TEST(Networks, ContainTheAddressesThatBeginAsTheyDo) {
  EXPECT_TRUE(contains("10.200.0.0/24", "10.200.0.255"));
  EXPECT_FALSE(contains("10.200.0.0/24", "10.200.1.0"));
  EXPECT_TRUE(contains("10.200.0.77/23", "10.200.1.0"));
  EXPECT_FALSE(contains("10.200.0.0/23", "10.200.2.0"));
  EXPECT_TRUE(contains("0.0.0.0/0", "192.0.2.1"));
  EXPECT_TRUE(contains("192.0.2.1/32", "192.0.2.1"));
  EXPECT_FALSE(contains("192.0.2.1/32", "192.0.2.0"));
  EXPECT_TRUE(contains("fd00:1::/64", "fd00:1::7"));
  EXPECT_FALSE(contains("fd00:1::/64", "fd00:1:0:1::7"));
}

// Each bit of an address, against each length.
TEST(Networks, OfEachLengthEndWhereTheyShould) {
  for (int bits = 0; bits <= 32; ++bits) {
    const std::string network = "170.170.170.170/" + std::to_string(bits);
    for (int bit = 0; bit < 32; ++bit) {
      const unsigned int changed = 0xaaaaaaaaU ^ (0x80000000U >> bit);
      const std::string address =
          std::to_string(changed >> 24U) + "." + std::to_string((changed >> 16U) & 255U) + "." +
          std::to_string((changed >> 8U) & 255U) + "." + std::to_string(changed & 255U);
      EXPECT_EQ(contains(network, address), bit >= bits) << network << " " << address;
    }
  }
}

TEST(Networks, AreOfOneFamily) {
  EXPECT_FALSE(contains("0.0.0.0/0", "fd00::1"));
  EXPECT_FALSE(contains("::/0", "10.0.0.1"));
  EXPECT_FALSE(contains("10.0.0.0/8", "eth0"));
  EXPECT_FALSE(contains("10.0.0.0/8", ""));
}

TEST(Networks, AreNotMadeOfOtherText) {
  for (const char* text :
       {"", "eth0", "10.0.0.1", "10.0.0/8", "10.0.0.0/", "10.0.0.0/33", "10.0.0.0/-1",
        "10.0.0.0/8x", "/8", "fd00::/129", "10.0.0.0/255.0.0.0"}) {
    EXPECT_FALSE(Network::parse(text)) << text;
  }
}

TEST(Addresses, OfThisMachineHaveTheLoopback) {
  const auto all = own_addresses();
  EXPECT_TRUE(std::ranges::any_of(all, [](const InterfaceAddress& one) {
    return one.is_on_loopback && is_loopback_address(one.address);
  }));
  EXPECT_FALSE(is_loopback_address("10.200.0.1"));
  EXPECT_TRUE(is_loopback_address("127.0.0.2") && is_loopback_address("::1"));
}

}  // namespace
}  // namespace weft
