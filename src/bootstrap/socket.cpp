#include "src/bootstrap/socket.hpp"

#include <algorithm>
#include <array>
#include <cerrno>
#include <charconv>
#include <cstddef>
#include <cstring>
#include <memory>
#include <optional>
#include <thread>
#include <vector>

#include <ifaddrs.h>
#include <net/if.h>
#include <netdb.h>
#include <netinet/in.h>
#include <netinet/tcp.h>
#include <poll.h>
#include <sys/socket.h>
#include <sys/un.h>
#include <unistd.h>

#include "src/base/error.hpp"

namespace weft::bootstrap {
namespace {

constexpr int kBacklog = 4096;  // the kernel limits it to net.core.somaxconn
constexpr auto kRetryInterval = std::chrono::milliseconds(50);
constexpr auto kAttemptLimit = std::chrono::seconds(1);

struct FreeAddresses {
  void operator()(addrinfo* list) const { ::freeaddrinfo(list); }
};

using Addresses = std::unique_ptr<addrinfo, FreeAddresses>;

// Null if the name does not resolve; `error` is then getaddrinfo's code.
Addresses resolve(const Address& address, int flags, int& error) {
  addrinfo hints{};
  hints.ai_family = AF_UNSPEC;
  hints.ai_socktype = SOCK_STREAM;
  hints.ai_flags = flags;
  addrinfo* list = nullptr;
  const std::string port = std::to_string(address.port);
  error = ::getaddrinfo(address.host.empty() ? nullptr : address.host.c_str(), port.c_str(), &hints,
                        &list);
  return Addresses(error == 0 ? list : nullptr);
}

struct UnixName {
  sockaddr_un name{};
  socklen_t size = 0;

  [[nodiscard]] const sockaddr* generic() const { return reinterpret_cast<const sockaddr*>(&name); }
};

UnixName unix_name(const Address& address) {
  UnixName name;
  name.name.sun_family = AF_UNIX;
  if (address.path.size() >= sizeof(name.name.sun_path)) {
    fail(Status::InvalidArgument, "unix:{}: the path is longer than {} bytes; use a shorter one",
         address.path, sizeof(name.name.sun_path) - 1);
  }
  std::memcpy(name.name.sun_path, address.path.c_str(), address.path.size() + 1);
  name.size = sizeof(name.name);
  if (address.path.front() == '@') {
    // An abstract name includes all bytes up to its length, so it has no terminating NUL.
    name.name.sun_path[0] = '\0';
    name.size = static_cast<socklen_t>(offsetof(sockaddr_un, sun_path) + address.path.size());
  }
  return name;
}

// The user at the other end, as of listen or connect; empty if the kernel does not report it.
std::optional<uid_t> peer_user(int socket) {
  ucred user{};
  socklen_t size = sizeof(user);
  return ::getsockopt(socket, SOL_SOCKET, SO_PEERCRED, &user, &size) == 0 ? std::optional(user.uid)
                                                                          : std::nullopt;
}

FileDescriptor make_socket(int family) {
  FileDescriptor made(::socket(family, SOCK_STREAM | SOCK_CLOEXEC | SOCK_NONBLOCK, 0));
  if (!made.is_open()) {
    fail("socket failed: {}; raise the limit of open files (ulimit -n)", errno_words(errno));
  }
  return made;
}

void set_option(int socket, int level, int name, int value) {
  // An unsupported option costs speed or a wait for a port, never correctness.
  static_cast<void>(::setsockopt(socket, level, name, &value, sizeof(value)));
}

void prepare_tcp(int socket) {
  // Without it, two small frames in a row cost 40 ms: Nagle's algorithm waits for a delayed ACK.
  set_option(socket, IPPROTO_TCP, TCP_NODELAY, 1);
  // A host that loses power sends nothing, and connections here may be idle for hours. tcp(7): 10 s
  // + 4 x 5 s.
  set_option(socket, SOL_SOCKET, SO_KEEPALIVE, 1);
  set_option(socket, IPPROTO_TCP, TCP_KEEPIDLE, 10);
  set_option(socket, IPPROTO_TCP, TCP_KEEPINTVL, 5);
  set_option(socket, IPPROTO_TCP, TCP_KEEPCNT, 4);
}

[[noreturn]] void fail_listen(const Address& address, int error) {
  const char* hint = "is it an address of this machine?";
  if (error == EADDRINUSE) {
    hint = address.is_unix()
               ? "remove the file if no job uses it"
               : "another job or program has this port; choose another, or port 0 for "
                 "any that is free";
  } else if (error == EACCES) {
    hint = "ports below 1024 need root; choose another, or port 0 for any that is free";
  }
  fail("cannot listen on {}: {}; {}", to_string(address), errno_words(error), hint);
}

std::uint16_t bound_port(int socket) {
  sockaddr_storage name{};
  socklen_t size = sizeof(name);
  ::getsockname(socket, reinterpret_cast<sockaddr*>(&name), &size);
  return ntohs(name.ss_family == AF_INET6 ? reinterpret_cast<sockaddr_in6*>(&name)->sin6_port
                                          : reinterpret_cast<sockaddr_in*>(&name)->sin_port);
}

Listener listen_unix(const Address& address) {
  const UnixName name = unix_name(address);
  FileDescriptor socket = make_socket(AF_UNIX);
  if (::bind(socket.get(), name.generic(), name.size) != 0 ||
      ::listen(socket.get(), kBacklog) != 0) {
    fail_listen(address, errno);
  }
  return {std::move(socket), address};
}

// "Every interface" is the IPv6 wildcard if there is one, as that also accepts IPv4 connections.
std::vector<const addrinfo*> in_listening_order(const addrinfo* list, bool is_wildcard) {
  std::vector<const addrinfo*> entries;
  for (const addrinfo* entry = list; entry != nullptr; entry = entry->ai_next) {
    const bool goes_first = is_wildcard && entry->ai_family == AF_INET6;
    entries.insert(goes_first ? entries.begin() : entries.end(), entry);
  }
  return entries;
}

Listener listen_tcp(const Address& address) {
  int code = 0;
  const Addresses list = resolve(address, AI_PASSIVE, code);
  if (list == nullptr) {
    fail("cannot listen on {}: {}", to_string(address), ::gai_strerror(code));
  }
  int error = 0;
  for (const addrinfo* entry : in_listening_order(list.get(), address.host.empty())) {
    FileDescriptor socket(
        ::socket(entry->ai_family, SOCK_STREAM | SOCK_CLOEXEC | SOCK_NONBLOCK, 0));
    if (!socket.is_open()) {
      error = errno;
      continue;
    }
    set_option(socket.get(), SOL_SOCKET, SO_REUSEADDR, 1);
    if (entry->ai_family == AF_INET6) {
      set_option(socket.get(), IPPROTO_IPV6, IPV6_V6ONLY, 0);
    }
    if (::bind(socket.get(), entry->ai_addr, entry->ai_addrlen) == 0 &&
        ::listen(socket.get(), kBacklog) == 0) {
      Address bound = address;
      bound.port = bound_port(socket.get());
      return {std::move(socket), bound};
    }
    error = errno;
  }
  fail_listen(address, error);
}

// Returns 0, or the errno of the attempt.
int finish_connect(int socket, const sockaddr* name, socklen_t size, Clock::time_point deadline) {
  if (::connect(socket, name, size) == 0) {
    return 0;
  }
  if (errno != EINPROGRESS) {
    return errno;
  }
  if (!wait_ready(socket, POLLOUT, deadline)) {
    return ETIMEDOUT;
  }
  int error = 0;
  socklen_t error_size = sizeof(error);
  ::getsockopt(socket, SOL_SOCKET, SO_ERROR, &error, &error_size);
  return error;
}

// One attempt; returns an open descriptor, or sets `error`.
FileDescriptor try_unix(const Address& address, Clock::time_point deadline, int& error) {
  const UnixName name = unix_name(address);
  FileDescriptor socket = make_socket(AF_UNIX);
  error = finish_connect(socket.get(), name.generic(), name.size, deadline);
  if (error != 0) {
    return {};
  }
  if (const auto user = peer_user(socket.get()); user && *user != ::geteuid()) {
    fail(Status::InvalidArgument,
         "{} belongs to user {}, and this process runs as user {}; all PEs of a job run as one",
         to_string(address), *user, ::geteuid());
  }
  return socket;
}

FileDescriptor try_tcp(const Address& address, Clock::time_point deadline, int& error) {
  int code = 0;
  const Addresses list = resolve(address, 0, code);
  if (list == nullptr) {
    fail(Status::InvalidArgument, "cannot reach the rendezvous at {}: {}", to_string(address),
         ::gai_strerror(code));
  }
  for (const addrinfo* entry = list.get(); entry != nullptr; entry = entry->ai_next) {
    FileDescriptor socket = make_socket(entry->ai_family);
    error = finish_connect(socket.get(), entry->ai_addr, entry->ai_addrlen, deadline);
    if (error == 0) {
      prepare_tcp(socket.get());
      return socket;
    }
  }
  return {};
}

bool may_come_later(int error) {
  return error == ECONNREFUSED || error == ENOENT || error == EAGAIN || error == ETIMEDOUT ||
         error == EHOSTUNREACH || error == ENETUNREACH || error == ECONNRESET;
}

std::string describe(std::span<const Address> addresses) {
  std::string text;
  for (const Address& address : addresses) {
    text += (text.empty() ? "" : " or ") + to_string(address);
  }
  return text;
}

// Empty for what is no address of IPv4 or IPv6, and for link-local ones, which mean something else
// on each host.
std::string numeric_host(const sockaddr& name) {
  socklen_t size = 0;
  if (name.sa_family == AF_INET) {
    size = sizeof(sockaddr_in);
  } else if (name.sa_family == AF_INET6 &&
             !IN6_IS_ADDR_LINKLOCAL(&reinterpret_cast<const sockaddr_in6&>(name).sin6_addr)) {
    size = sizeof(sockaddr_in6);
  }
  std::array<char, NI_MAXHOST> text{};
  return size != 0 && ::getnameinfo(&name, size, text.data(), text.size(), nullptr, 0,
                                    NI_NUMERICHOST) == 0
             ? text.data()
             : "";
}

}  // namespace

Address parse_address(std::string_view text) {
  if (text.starts_with("unix:/")) {
    return {.host = {}, .port = 0, .path = std::string(text.substr(5))};
  }
  const std::size_t colon = text.rfind(':');
  std::string_view host = text.substr(0, std::min(colon, text.size()));
  const bool bracketed = host.starts_with('[') && host.ends_with(']');
  std::uint16_t port = 0;
  bool is_good =
      colon != std::string_view::npos && (bracketed || host.find(':') == std::string_view::npos);
  if (is_good) {
    const std::string_view digits = text.substr(colon + 1);
    const auto [end, code] = std::from_chars(digits.data(), digits.data() + digits.size(), port);
    is_good = code == std::errc{} && end == digits.data() + digits.size();
  }
  if (!is_good) {
    fail(Status::InvalidArgument,
         "'{}' is not an address; write host:port, [ipv6]:port or unix:/path", text);
  }
  if (bracketed) {
    host = host.substr(1, host.size() - 2);
  }
  return {.host = std::string(host), .port = port, .path = {}};
}

std::string to_string(const Address& address) {
  if (address.is_unix()) {
    return "unix:" + address.path;
  }
  const bool is_ipv6 = address.host.find(':') != std::string::npos;
  return fmt::format("{}{}{}:{}", is_ipv6 ? "[" : "", address.host, is_ipv6 ? "]" : "",
                     address.port);
}

Listener listen_on(const Address& address) {
  return address.is_unix() ? listen_unix(address) : listen_tcp(address);
}

FileDescriptor dial(const Address& address, Clock::time_point deadline) {
  return dial_any(std::span(&address, 1), deadline).socket;
}

Dialled dial_any(std::span<const Address> addresses, Clock::time_point deadline) {
  while (true) {
    int first_error = 0;
    for (const Address& address : addresses) {
      // An address without an answer must not use up the time of the others.
      const auto limit =
          addresses.size() == 1 ? deadline : std::min(deadline, Clock::now() + kAttemptLimit);
      int error = 0;
      FileDescriptor socket =
          address.is_unix() ? try_unix(address, limit, error) : try_tcp(address, limit, error);
      if (socket.is_open()) {
        return {std::move(socket), address};
      }
      first_error = first_error == 0 ? error : first_error;
    }
    const std::string where = describe(addresses);
    if (!may_come_later(first_error)) {
      fail("cannot reach the rendezvous at {}: {}", where, errno_words(first_error));
    }
    if (Clock::now() + kRetryInterval >= deadline) {
      fail(Status::Timeout,
           "cannot reach the rendezvous at {}: {}, until the deadline; is its host (weft-run, or "
           "else PE 0) alive, and does a firewall let this port through?",
           where, errno_words(first_error));
    }
    std::this_thread::sleep_for(kRetryInterval);
  }
}

InterfaceChoice::InterfaceChoice(std::string_view text) {
  excludes_ = text.starts_with('^');
  text.remove_prefix(excludes_ ? 1 : 0);
  is_exact_ = text.starts_with('=');
  text.remove_prefix(is_exact_ ? 1 : 0);
  while (!text.empty()) {
    const std::size_t end = std::min(text.find(','), text.size());
    if (end > 0) {
      names_.emplace_back(text.substr(0, end));
    }
    text.remove_prefix(std::min(end + 1, text.size()));
  }
}

bool InterfaceChoice::contains(std::string_view name) const {
  const bool is_named = std::ranges::any_of(names_, [&](const std::string& one) {
    return is_exact_ ? name == one : name.starts_with(one);
  });
  return names_.empty() || is_named != excludes_;
}

std::vector<std::string> own_hosts(const Config& config) {
  ifaddrs* list = nullptr;
  if (::getifaddrs(&list) != 0) {
    fail("getifaddrs failed: {}", errno_words(errno));
  }
  const std::unique_ptr<ifaddrs, decltype(&::freeifaddrs)> owner(list, &::freeifaddrs);
  const InterfaceChoice choice(config.bootstrap_interfaces);
  std::vector<std::string> hosts;
  std::vector<std::string> loopback;
  for (const ifaddrs* entry = list; entry != nullptr; entry = entry->ifa_next) {
    if (entry->ifa_addr == nullptr || (entry->ifa_flags & IFF_UP) == 0 ||
        !choice.contains(entry->ifa_name) ||
        (config.bootstrap_family == "ipv4" && entry->ifa_addr->sa_family != AF_INET) ||
        (config.bootstrap_family == "ipv6" && entry->ifa_addr->sa_family != AF_INET6)) {
      continue;
    }
    const std::string host = numeric_host(*entry->ifa_addr);
    if (!host.empty()) {
      ((entry->ifa_flags & IFF_LOOPBACK) != 0 ? loopback : hosts).push_back(host);
    }
  }
  if (hosts.empty() && loopback.empty()) {
    fail(Status::InvalidArgument,
         "WEFT_BOOTSTRAP_INTERFACES={} and WEFT_BOOTSTRAP_FAMILY={} leave no address of this host; "
         "`ip address` lists those that are there",
         config.bootstrap_interfaces, config.bootstrap_family);
  }
  return hosts.empty() ? loopback : hosts;
}

FileDescriptor accept_from(const Listener& listener) {
  FileDescriptor socket(
      ::accept4(listener.socket.get(), nullptr, nullptr, SOCK_CLOEXEC | SOCK_NONBLOCK));
  if (!socket.is_open()) {
    return socket;
  }
  if (!listener.address.is_unix()) {
    prepare_tcp(socket.get());
  } else if (const auto user = peer_user(socket.get()); user && *user != ::geteuid()) {
    socket.reset();
    errno = ECONNABORTED;
  }
  return socket;
}

std::string peer_name(int socket) {
  sockaddr_storage name{};
  socklen_t size = sizeof(name);
  std::array<char, NI_MAXHOST> host{};
  std::array<char, NI_MAXSERV> port{};
  if (::getpeername(socket, reinterpret_cast<sockaddr*>(&name), &size) != 0) {
    return "an unknown address";
  }
  if (name.ss_family == AF_UNIX) {
    return "a process on this machine";
  }
  if (::getnameinfo(reinterpret_cast<sockaddr*>(&name), size, host.data(), host.size(), port.data(),
                    port.size(), NI_NUMERICHOST | NI_NUMERICSERV) != 0) {
    return "an unknown address";
  }
  return fmt::format("{}:{}", host.data(), port.data());
}

std::string source_host_towards(const std::string& host) {
  int code = 0;
  const Addresses list = resolve({.host = host, .port = 9, .path = {}}, 0, code);
  for (const addrinfo* entry = list.get(); entry != nullptr; entry = entry->ai_next) {
    // Connecting a UDP socket sends nothing, but makes the kernel choose its source address.
    const FileDescriptor probe(::socket(entry->ai_family, SOCK_DGRAM | SOCK_CLOEXEC, 0));
    sockaddr_storage name{};
    socklen_t size = sizeof(name);
    std::array<char, NI_MAXHOST> text{};
    if (probe.is_open() && ::connect(probe.get(), entry->ai_addr, entry->ai_addrlen) == 0 &&
        ::getsockname(probe.get(), reinterpret_cast<sockaddr*>(&name), &size) == 0 &&
        ::getnameinfo(reinterpret_cast<sockaddr*>(&name), size, text.data(), text.size(), nullptr,
                      0, NI_NUMERICHOST) == 0) {
      return text.data();
    }
  }
  return {};
}

bool wait_ready(int fd, short events, Clock::time_point deadline) {
  pollfd entry{.fd = fd, .events = events, .revents = 0};
  while (true) {
    const auto left = std::chrono::ceil<std::chrono::milliseconds>(deadline - Clock::now()).count();
    const int wait_ms = static_cast<int>(std::clamp<std::int64_t>(left, 0, 1'000'000));
    const int ready = ::poll(&entry, 1, wait_ms);
    if (ready > 0) {
      return true;
    }
    if (ready < 0 && errno != EINTR) {
      fail("poll failed: {}", errno_words(errno));
    }
    if (Clock::now() >= deadline) {
      return false;
    }
  }
}

}  // namespace weft::bootstrap
