// Network interfaces of the caller's network namespace, from getifaddrs and ethtool's ioctl.
//
// Not from /sys/class/net: sysfs shows the namespace in which it was mounted, so in a lab host or a
// container it would list another host's NICs. Control path; any thread.
#pragma once

#include <vector>

#include "src/topology/machine.hpp"

namespace weft::topology {

// In the kernel's order. Throws Error if the kernel does not return the list. Rate and PCI address
// of a NIC are empty if the kernel does not report them.
[[nodiscard]] std::vector<Nic> list_interfaces();

// Fills rate and state of the RDMA devices from `root`/NAME/ports/1 (root: /sys/class/infiniband).
void read_rdma_ports(std::vector<Nic>& nics, const std::string& root);

}  // namespace weft::topology
