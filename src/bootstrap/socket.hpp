// Stream sockets by address: "host:port", "[::1]:port" or "unix:/path". Port 0 means any free port.
// A path that begins with '@' is a name in Linux's abstract namespace (unix(7)): it is not a file,
// and vanishes with its owner.
//
// The two ends of a unix socket must belong to one user: a connection from another user, or to
// another user's socket of that name, is rejected (SO_PEERCRED, unix(7)). A TCP connection whose
// remote host silently disappears breaks within half a minute.
//
// Any thread; no state. All descriptors are close-on-exec and non-blocking, so that every wait has
// a deadline.
#pragma once

#include <chrono>
#include <cstddef>
#include <cstdint>
#include <span>
#include <string>
#include <string_view>
#include <vector>

#include "src/base/clock.hpp"
#include "src/base/config.hpp"
#include "src/base/file_descriptor.hpp"

namespace weft::bootstrap {

struct Address {
  std::string host;  // empty for unix
  std::uint16_t port = 0;
  std::string path;  // of a unix socket; empty for TCP

  [[nodiscard]] bool is_unix() const { return !path.empty(); }
};

// Throws Error (InvalidArgument) that lists the accepted forms.
[[nodiscard]] Address parse_address(std::string_view text);
[[nodiscard]] std::string to_string(const Address& address);

struct Listener {
  FileDescriptor socket;
  Address address;  // with the port actually chosen if port 0 was requested
};

// Throws Error; if the port is in use the message says so and what to do. An empty host means every
// interface.
[[nodiscard]] Listener listen_on(const Address& address);

// Connects, and retries until `deadline` while nobody listens there yet. Throws Error (Timeout;
// InvalidArgument if another user listens there).
[[nodiscard]] FileDescriptor dial(const Address& address, Clock::time_point deadline);

struct Dialled {
  FileDescriptor socket;
  Address address;  // that answered
};

// As dial, for one rendezvous that may be reached at several addresses. Not empty.
[[nodiscard]] Dialled dial_any(std::span<const Address> addresses, Clock::time_point deadline);

// Which of this machine's interfaces are meant: names by their beginnings, "eth,ib"; "=eth0"
// exactly; "^docker" all others.
class InterfaceChoice {
 public:
  explicit InterfaceChoice(std::string_view text);

  [[nodiscard]] bool contains(std::string_view name) const;

 private:
  bool excludes_ = false;
  bool is_exact_ = false;
  std::vector<std::string> names_;
};

// The addresses of this machine's interfaces that are up and that WEFT_BOOTSTRAP_INTERFACES and
// WEFT_BOOTSTRAP_FAMILY allow; those of the loopback only if there are no others. Throws Error if
// these settings leave none.
[[nodiscard]] std::vector<std::string> own_hosts(const Config& config);

// The next connection of a listener. If the result is not open, see errno: EAGAIN means that there
// is none, ECONNABORTED that it belonged to another user.
[[nodiscard]] FileDescriptor accept_from(const Listener& listener);

// The remote address, such as "10.0.0.7:4711", for messages.
[[nodiscard]] std::string peer_name(int socket);

// The source address that this machine would use towards `host`, which a PE there can reach. Empty
// if the name does not resolve.
[[nodiscard]] std::string source_host_towards(const std::string& host);

// poll(2) for one descriptor; false when `deadline` passed. `events` are poll's.
[[nodiscard]] bool wait_ready(int fd, short events, Clock::time_point deadline);

}  // namespace weft::bootstrap
