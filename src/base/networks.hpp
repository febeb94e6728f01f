// Addresses and networks of IPv4 and IPv6 as text, and the addresses of this machine's interfaces.
// What is no address, and no network, is said by a return value.
//
// Any thread; nothing is cached.
#pragma once

#include <array>
#include <cstddef>
#include <optional>
#include <string>
#include <string_view>
#include <vector>

namespace weft {

// "10.200.0.0/24", "fd00:1::/64".
class Network {
 public:
  // Empty for what is no network; host bits may be set.
  [[nodiscard]] static std::optional<Network> parse(std::string_view text);

  // False for an address of the other family, and for text that is no address.
  [[nodiscard]] bool contains(const std::string& address) const;

 private:
  std::array<std::byte, 16> bytes_{};
  std::size_t size_ = 0;  // of bytes_: 4 or 16
  std::size_t prefix_bits_ = 0;
};

[[nodiscard]] bool is_address(const std::string& text);
// 127.0.0.0/8 and ::1, which reach only this machine. An address that an administrator has put on
// the loopback interface is none of them.
[[nodiscard]] bool is_loopback_address(const std::string& address);

struct InterfaceAddress {
  std::string interface;
  std::string address;
  bool is_on_loopback = false;  // the interface, not the address
};

// Of the interfaces of this network namespace that are up, without link-local ones. Empty if the
// kernel does not return them.
[[nodiscard]] std::vector<InterfaceAddress> own_addresses();

}  // namespace weft
