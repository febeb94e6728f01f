// For providers whose connections are TCP sockets of this process (tcp, net, ofi_rxm over tcp): looks
// at the kernel's own state of a connection, and ends it for good.
//
// Why: TCP keeps a cut connection for a quarter of an hour without an error, and delivers what it
// has queued when the cable comes back, long after the bytes were sent again on another rail. The
// sockets belong to the provider; they are found by their addresses among our descriptors.
//
// Called under the rail's lock. Costs a walk over /proc/self/fd, so only when a link is suspected.
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
  // `address`: what fi_getname gave, a sockaddr. `nic`: the interface's name, or anything else.
  SocketWatch(std::string nic, std::span<const std::byte> address);

  // NicDown: the interface has no carrier. Dead: the peer's kernel has acknowledged nothing for
  // `silent_ms` although bytes are on the way (tcp(7), TCP_INFO).
  [[nodiscard]] LinkHealth examine(std::span<const std::byte> peer_address,
                                   std::uint32_t silent_ms) const noexcept;

  // Resets every connection between the two addresses: unsent bytes are dropped (socket(7),
  // SO_LINGER of 0), the provider sees the end at once.
  void cut(std::span<const std::byte> peer_address) const noexcept;

 private:
  void for_each_socket(std::span<const std::byte> peer_address,
                       const std::function<void(int)>& visit) const;
  [[nodiscard]] bool has_carrier() const;

  std::string nic_;
  std::vector<std::byte> address_;
};

}  // namespace weft::fabric
