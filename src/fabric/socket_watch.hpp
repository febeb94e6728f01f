// For providers whose connections are TCP sockets of this process (tcp, net, ofi_rxm over tcp):
// reads the kernel's state of a connection, and closes it for good.
//
// Reason: TCP keeps a cut connection for a quarter of an hour without an error. It delivers the
// queued data when the cable is reconnected, long after the bytes were resent on another rail. The
// sockets belong to the provider; they are found by their addresses among this process's
// descriptors.
//
// Called under the rail's lock. Costs a walk over /proc/self/fd, so it is called only if a link is
// suspect.
#pragma once

#include <cstddef>
#include <cstdint>
#include <functional>
#include <span>
#include <string>
#include <vector>

#include "src/fabric/rail.hpp"

namespace weft::fabric {

class SocketWatch {
 public:
  // `address`: the result of fi_getname, a sockaddr. `nic`: the interface's name, or any other
  // text.
  SocketWatch(std::string nic, std::span<const std::byte> address);

  // NicDown: the interface has no carrier. Dead: the peer's kernel has acknowledged nothing for
  // `silent_ms` although bytes are in flight, or has not answered two attempts to connect (tcp(7),
  // TCP_INFO).
  [[nodiscard]] LinkHealth examine(std::span<const std::byte> peer_address,
                                   std::uint32_t silent_ms) const noexcept;

  // Resets every connection between the two addresses: unsent bytes are dropped (socket(7),
  // SO_LINGER of 0), and the provider sees the close at once.
  void cut(std::span<const std::byte> peer_address) const noexcept;

 private:
  void for_each_socket(std::span<const std::byte> peer_address,
                       const std::function<void(int)>& visit) const;
  [[nodiscard]] bool has_carrier() const;

  std::string nic_;
  std::vector<std::byte> address_;
};

}  // namespace weft::fabric
