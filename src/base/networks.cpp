#include "src/base/networks.hpp"

#include <algorithm>
#include <charconv>
#include <cstdint>
#include <memory>

#include <arpa/inet.h>
#include <ifaddrs.h>
#include <net/if.h>
#include <netinet/in.h>
#include <sys/socket.h>

namespace weft {
namespace {

struct AddressBytes {
  std::array<std::byte, 16> bytes{};
  std::size_t size = 0;
};

std::optional<AddressBytes> parse_address(const std::string& text) {
  AddressBytes parsed;
  if (::inet_pton(AF_INET, text.c_str(), parsed.bytes.data()) == 1) {
    parsed.size = sizeof(in_addr);
  } else if (::inet_pton(AF_INET6, text.c_str(), parsed.bytes.data()) == 1) {
    parsed.size = sizeof(in6_addr);
  } else {
    return std::nullopt;
  }
  return parsed;
}

std::string text_of(const sockaddr& address) {
  std::array<char, INET6_ADDRSTRLEN> text{};
  if (address.sa_family == AF_INET) {
    const auto& in = reinterpret_cast<const sockaddr_in&>(address);
    ::inet_ntop(AF_INET, &in.sin_addr, text.data(), text.size());
  } else if (address.sa_family == AF_INET6) {
    const auto& in6 = reinterpret_cast<const sockaddr_in6&>(address);
    if (!IN6_IS_ADDR_LINKLOCAL(&in6.sin6_addr)) {
      ::inet_ntop(AF_INET6, &in6.sin6_addr, text.data(), text.size());
    }
  }
  return text.data();
}

}  // namespace

std::optional<Network> Network::parse(std::string_view text) {
  const std::size_t slash = text.find('/');
  if (slash == std::string_view::npos) {
    return std::nullopt;
  }
  const auto address = parse_address(std::string(text.substr(0, slash)));
  const std::string_view digits = text.substr(slash + 1);
  std::size_t bits = 0;
  const auto [end, code] = std::from_chars(digits.data(), digits.data() + digits.size(), bits);
  if (!address || code != std::errc{} || end != digits.data() + digits.size() ||
      bits > address->size * 8) {
    return std::nullopt;
  }
  Network network;
  network.bytes_ = address->bytes;
  network.size_ = address->size;
  network.prefix_bits_ = bits;
  return network;
}

bool Network::contains(const std::string& address) const {
  const auto other = parse_address(address);
  if (!other || other->size != size_) {
    return false;
  }
  for (std::size_t bit = 0; bit < prefix_bits_; bit += 8) {
    const std::size_t kept = std::min<std::size_t>(prefix_bits_ - bit, 8);
    const auto mask = static_cast<std::byte>(0xffU << (8 - kept));
    if (((bytes_[bit / 8] ^ other->bytes[bit / 8]) & mask) != std::byte{0}) {
      return false;
    }
  }
  return true;
}

bool is_address(const std::string& text) {
  return parse_address(text).has_value();
}

bool is_loopback_address(const std::string& address) {
  static const Network kLoopback = *Network::parse("127.0.0.0/8");
  return kLoopback.contains(address) || address == "::1";
}

std::vector<InterfaceAddress> own_addresses() {
  ifaddrs* list = nullptr;
  if (::getifaddrs(&list) != 0) {
    return {};
  }
  const std::unique_ptr<ifaddrs, decltype(&::freeifaddrs)> owner(list, &::freeifaddrs);
  std::vector<InterfaceAddress> found;
  for (const ifaddrs* entry = list; entry != nullptr; entry = entry->ifa_next) {
    if (entry->ifa_addr == nullptr || (entry->ifa_flags & IFF_UP) == 0) {
      continue;
    }
    std::string text = text_of(*entry->ifa_addr);
    if (!text.empty()) {
      found.push_back({.interface = entry->ifa_name,
                       .address = std::move(text),
                       .is_on_loopback = (entry->ifa_flags & IFF_LOOPBACK) != 0});
    }
  }
  return found;
}

}  // namespace weft
