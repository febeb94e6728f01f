#include "src/fabric/socket_watch.hpp"

#include <charconv>
#include <cstring>
#include <memory>
#include <string_view>

#include <dirent.h>
#include <net/if.h>
#include <netinet/in.h>
#include <netinet/tcp.h>
#include <sys/ioctl.h>
#include <sys/socket.h>
#include <unistd.h>

namespace weft::fabric {
namespace {

struct Endpoint {
  std::array<std::byte, 16> host{};
  std::uint16_t port = 0;
  bool known = false;
};

Endpoint endpoint_of(const std::byte* address, std::size_t bytes) {
  Endpoint endpoint;
  if (bytes == 0) {
    return endpoint;
  }
  sockaddr_storage storage{};
  std::memcpy(&storage, address, std::min(bytes, sizeof(storage)));
  if (storage.ss_family == AF_INET) {
    sockaddr_in in{};
    std::memcpy(&in, &storage, sizeof(in));
    std::memcpy(endpoint.host.data(), &in.sin_addr, sizeof(in.sin_addr));
    endpoint.port = in.sin_port;
    endpoint.known = true;
  } else if (storage.ss_family == AF_INET6) {
    sockaddr_in6 in6{};
    std::memcpy(&in6, &storage, sizeof(in6));
    std::memcpy(endpoint.host.data(), &in6.sin6_addr, sizeof(in6.sin6_addr));
    endpoint.port = in6.sin6_port;
    endpoint.known = true;
  }
  return endpoint;
}

struct SocketEnds {
  Endpoint local;
  Endpoint remote;
};

// Not getpeername: it knows no peer before the connection is established (inet_getname in Linux'
// net/ipv4/af_inet.c). SO_PEERNAME does, if asked for no more bytes than the address has.
SocketEnds ends_of(int socket) {
  sockaddr_storage local{};
  sockaddr_storage remote{};
  socklen_t bytes = sizeof(local);
  if (::getsockname(socket, reinterpret_cast<sockaddr*>(&local), &bytes) != 0 ||
      ::getsockopt(socket, SOL_SOCKET, SO_PEERNAME, &remote, &bytes) != 0) {
    return {};
  }
  return {endpoint_of(reinterpret_cast<const std::byte*>(&local), bytes),
          endpoint_of(reinterpret_cast<const std::byte*>(&remote), bytes)};
}

bool is_dead(const tcp_info& info, std::uint32_t silent_ms) {
  // Two timeouts in a row: a single one also occurs on a live connection after a queue overflow,
  // and where many peers connect at once.
  if (info.tcpi_state == TCP_SYN_SENT) {
    return info.tcpi_retransmits > 1;
  }
  return info.tcpi_unacked > 0 && info.tcpi_retransmits > 1 && info.tcpi_last_ack_recv > silent_ms;
}

}  // namespace

SocketWatch::SocketWatch(std::string nic, std::span<const std::byte> address)
    : nic_(std::move(nic)), address_(address.begin(), address.end()) {}

void SocketWatch::for_each_socket(std::span<const std::byte> peer_address,
                                  const std::function<void(int)>& visit) const {
  const Endpoint mine = endpoint_of(address_.data(), address_.size());
  const Endpoint theirs = endpoint_of(peer_address.data(), peer_address.size());
  const std::unique_ptr<DIR, int (*)(DIR*)> folder(::opendir("/proc/self/fd"), &::closedir);
  if (!mine.known || !theirs.known || folder == nullptr) {
    return;
  }
  // concurrency: only this thread uses the stream, as readdir(3) requires.
  while (const dirent* entry = ::readdir(folder.get())) {  // NOLINT(concurrency-mt-unsafe)
    const std::string_view name(entry->d_name);
    int descriptor = -1;
    const auto [end, code] = std::from_chars(name.data(), name.data() + name.size(), descriptor);
    if (code != std::errc{}) {
      continue;
    }
    const auto [local, remote] = ends_of(descriptor);
    const bool same_hosts =
        local.known && remote.known && local.host == mine.host && remote.host == theirs.host;
    // Our connections go to their listening port; theirs come in on our listening port.
    if (same_hosts && (remote.port == theirs.port || local.port == mine.port)) {
      visit(descriptor);
    }
  }
}

bool SocketWatch::has_carrier() const {
  const int socket = ::socket(AF_INET, SOCK_DGRAM | SOCK_CLOEXEC, 0);
  if (socket < 0 || nic_.size() >= IFNAMSIZ) {
    return true;
  }
  ifreq request{};
  std::memcpy(request.ifr_name, nic_.c_str(), nic_.size());
  const bool known = ::ioctl(socket, SIOCGIFFLAGS, &request) == 0;
  ::close(socket);
  return !known || (request.ifr_flags & (IFF_UP | IFF_RUNNING)) == (IFF_UP | IFF_RUNNING);
}

LinkHealth SocketWatch::examine(std::span<const std::byte> peer_address,
                                std::uint32_t silent_ms) const noexcept {
  if (!has_carrier()) {
    return LinkHealth::NicDown;
  }
  LinkHealth health = LinkHealth::Unknown;
  for_each_socket(peer_address, [&](int socket) {
    tcp_info info{};
    socklen_t bytes = sizeof(info);
    if (::getsockopt(socket, IPPROTO_TCP, TCP_INFO, &info, &bytes) != 0) {
      return;
    }
    if (is_dead(info, silent_ms)) {
      health = LinkHealth::Dead;
    } else if (health == LinkHealth::Unknown) {
      health = LinkHealth::Alive;
    }
  });
  return health;
}

void SocketWatch::cut(std::span<const std::byte> peer_address) const noexcept {
  for_each_socket(peer_address, [](int socket) {
    const linger drop{1, 0};
    ::setsockopt(socket, SOL_SOCKET, SO_LINGER, &drop, sizeof(drop));
    ::shutdown(socket, SHUT_RDWR);
  });
}

}  // namespace weft::fabric
