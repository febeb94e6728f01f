// What a rail over TCP opens to its network: sockets at its NIC's address alone, and regions whose
// keys nobody can guess. docs/SECURITY.md says so.
#include <gtest/gtest.h>

#include <algorithm>
#include <charconv>
#include <filesystem>
#include <set>
#include <string>
#include <vector>

#include <arpa/inet.h>
#include <netinet/in.h>
#include <sys/socket.h>

#include "src/base/config.hpp"
#include "src/fabric/discovery.hpp"

namespace weft::fabric {
namespace {

NicInfo loopback_nic(const std::string& address) {
  Config config = load_config([](std::string_view) { return std::nullopt; });
  config.provider = "tcp";
  config.nics = address;
  const std::vector<NicInfo> nics = discover(config);
  const auto nic = std::ranges::find(nics, address, &NicInfo::address);
  EXPECT_NE(nic, nics.end());
  return *nic;
}

// The addresses at which sockets of this process listen, by descriptor.
std::set<std::pair<int, std::string>> listeners() {
  std::set<std::pair<int, std::string>> found;
  for (const auto& entry : std::filesystem::directory_iterator("/proc/self/fd")) {
    const std::string name = entry.path().filename();
    int descriptor = -1;
    std::from_chars(name.data(), name.data() + name.size(), descriptor);
    int is_listening = 0;
    socklen_t bytes = sizeof(is_listening);
    sockaddr_in address{};
    socklen_t address_bytes = sizeof(address);
    if (::getsockopt(descriptor, SOL_SOCKET, SO_ACCEPTCONN, &is_listening, &bytes) == 0 &&
        is_listening != 0 &&
        ::getsockname(descriptor, reinterpret_cast<sockaddr*>(&address), &address_bytes) == 0) {
      std::array<char, INET_ADDRSTRLEN> text{};
      const char* words = address.sin_family == AF_INET
                              ? ::inet_ntop(AF_INET, &address.sin_addr, text.data(), text.size())
                              : "of another family";
      found.emplace(descriptor, words);
    }
  }
  return found;
}

TEST(RailOverTcp, ListensAtTheAddressOfItsNicAlone) {
  for (const std::string address : {"127.0.0.1", "127.0.0.2"}) {
    const auto before = listeners();
    const auto rail = open_rail(loopback_nic(address));
    std::vector<std::string> added;
    for (const auto& listener : listeners()) {
      if (!before.contains(listener)) {
        added.push_back(listener.second);
      }
    }
    ASSERT_FALSE(added.empty()) << "the test sees no socket of the rail";
    for (const std::string& where : added) {
      EXPECT_EQ(where, address);
    }
  }
}

TEST(RailOverTcp, GivesEachRegionAKeyThatDoesNotFollowFromOthers) {
  std::vector<std::byte> memory(3 * 4096);
  std::set<std::uint64_t> keys;
  for (int rails = 0; rails < 2; ++rails) {
    const auto rail = open_rail(loopback_nic("127.0.0.1"));
    for (std::size_t region = 0; region < 3; ++region) {
      const RegionKey key = rail->add_region(std::span(memory).subspan(region * 4096, 4096));
      // By chance one of 2^32 is so small.
      EXPECT_GT(key.key.value, std::uint64_t{1} << 32U);
      keys.insert(key.key.value);
    }
  }
  EXPECT_EQ(keys.size(), 6U);
}

}  // namespace
}  // namespace weft::fabric
