// Network interfaces of the caller's network namespace, by getifaddrs and ethtool's ioctl.
//
// Not from /sys/class/net: sysfs shows the namespace it was mounted in, so in a lab host or a
// container it lists another host's NICs. Control path; any thread.
#pragma once

#include <vector>

#include "src/topology/machine.hpp"

namespace weft::topology {

// In the kernel's order. Throws Error when the kernel refuses the list; a NIC whose rate or PCI
// address it will not tell has none.
[[nodiscard]] std::vector<Nic> list_interfaces();

// Fills rate and state of the RDMA devices from `root`/NAME/ports/1 (root: /sys/class/infiniband).
void read_rdma_ports(std::vector<Nic>& nics, const std::string& root);

}  // namespace weft::topology
