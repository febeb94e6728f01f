#include "src/topology/interfaces.hpp"

#include <algorithm>
#include <array>
#include <cerrno>
#include <cstring>
#include <fstream>
#include <memory>
#include <sstream>

#include <ifaddrs.h>
#include <linux/ethtool.h>
#include <linux/sockios.h>
#include <net/if.h>
#include <netdb.h>
#include <sys/ioctl.h>
#include <sys/socket.h>
#include <unistd.h>

#include "src/base/error.hpp"
#include "src/topology/links.hpp"

namespace weft::topology {
namespace {

class Socket {
 public:
  Socket() : fd_(::socket(AF_INET, SOCK_DGRAM | SOCK_CLOEXEC, 0)) {}

  Socket(const Socket&) = delete;
  Socket& operator=(const Socket&) = delete;

  ~Socket() {
    if (fd_ >= 0) {
      ::close(fd_);
    }
  }

  // Calls ethtool's ioctl on `name`; false if the driver does not support it.
  bool ethtool(const std::string& name, void* command) const {
    ifreq request{};
    const std::size_t length = std::min(name.size(), sizeof request.ifr_name - 1);
    std::memcpy(request.ifr_name, name.data(), length);
    request.ifr_data = static_cast<char*>(command);
    return ::ioctl(fd_, SIOCETHTOOL, &request) == 0;
  }

 private:
  int fd_;
};

// Bits per second, 0 if the driver does not report it. Uses ETHTOOL_GSET, because GLINKSETTINGS
// needs a buffer sized by a first call and adds only link modes.
std::uint64_t read_rate(const Socket& socket, const std::string& name) {
  ethtool_cmd command{};
  command.cmd = ETHTOOL_GSET;
  if (!socket.ethtool(name, &command)) {
    return 0;
  }
  const std::uint32_t megabits = ethtool_cmd_speed(&command);
  return megabits == 0 || megabits == static_cast<std::uint32_t>(SPEED_UNKNOWN)
             ? 0
             : std::uint64_t{megabits} * 1'000'000;
}

void read_driver(const Socket& socket, Nic& nic) {
  ethtool_drvinfo info{};
  info.cmd = ETHTOOL_GDRVINFO;
  if (!socket.ethtool(nic.name, &info)) {
    return;
  }
  if (std::string_view(info.driver) == "bridge") {
    nic.kind = NicKind::Bridge;
  }
  nic.pci = parse_pci_address(info.bus_info);
}

Nic make_nic(const Socket& socket, const ifaddrs& entry) {
  Nic nic;
  nic.name = entry.ifa_name;
  nic.kind = (entry.ifa_flags & IFF_LOOPBACK) != 0 ? NicKind::Loopback : NicKind::Net;
  nic.up = (entry.ifa_flags & IFF_UP) != 0 && (entry.ifa_flags & IFF_RUNNING) != 0;
  if (nic.kind == NicKind::Net) {
    read_driver(socket, nic);
    nic.rate_bits_per_s = read_rate(socket, nic.name);
  }
  return nic;
}

std::optional<std::string> address_of(const ifaddrs& entry) {
  if (entry.ifa_addr == nullptr ||
      (entry.ifa_addr->sa_family != AF_INET && entry.ifa_addr->sa_family != AF_INET6)) {
    return std::nullopt;
  }
  const socklen_t length =
      entry.ifa_addr->sa_family == AF_INET ? sizeof(sockaddr_in) : sizeof(sockaddr_in6);
  std::array<char, NI_MAXHOST> text{};
  if (::getnameinfo(entry.ifa_addr, length, text.data(), text.size(), nullptr, 0, NI_NUMERICHOST) !=
      0) {
    return std::nullopt;
  }
  return std::string(text.data());
}

std::string first_line(const std::string& path) {
  std::ifstream file(path);
  std::string line;
  std::getline(file, line);
  return line;
}

}  // namespace

std::vector<Nic> list_interfaces() {
  ifaddrs* list = nullptr;
  if (::getifaddrs(&list) != 0) {
    fail("getifaddrs failed: {}", errno_words(errno));
  }
  const std::unique_ptr<ifaddrs, decltype(&::freeifaddrs)> owner(list, &::freeifaddrs);
  const Socket socket;
  const std::vector<Link> links = list_links();
  std::vector<Nic> nics;
  for (const ifaddrs* entry = list; entry != nullptr; entry = entry->ifa_next) {
    auto found = std::ranges::find(nics, std::string_view(entry->ifa_name), &Nic::name);
    if (found == nics.end()) {
      found = nics.insert(nics.end(), make_nic(socket, *entry));
    }
    if (auto address = address_of(*entry)) {
      found->addresses.push_back(std::move(*address));
    }
  }
  for (Nic& nic : nics) {
    if (nic.kind == NicKind::Bridge && !leads_to_a_network(links, nic.name)) {
      nic.kind = NicKind::Internal;
    }
  }
  return nics;
}

void read_rdma_ports(std::vector<Nic>& nics, const std::string& root) {
  for (Nic& nic : nics) {
    if (nic.kind != NicKind::Rdma) {
      continue;
    }
    // "4: ACTIVE" and "400 Gb/sec (4X NDR)": Documentation/ABI/stable/sysfs-class-infiniband.
    const std::string port = root + "/" + nic.name + "/ports/1/";
    const std::string state = first_line(port + "state");
    nic.up = state.empty() ? nic.up : state.starts_with('4');
    std::istringstream rate(first_line(port + "rate"));
    double gigabits = 0;
    if (rate >> gigabits && gigabits > 0) {
      nic.rate_bits_per_s = static_cast<std::uint64_t>(gigabits * 1e9);
    }
  }
}

}  // namespace weft::topology
