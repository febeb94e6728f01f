// Which bridges of this machine lead to a network: those with a port that is a NIC, and not only
// ports of containers and VMs. Read from the kernel by rtnetlink(7), which sees the caller's
// network namespace and asks for no privilege.
//
// Any thread; nothing is cached.
#pragma once

#include <cstdint>
#include <string>
#include <string_view>
#include <vector>

namespace weft::topology {

// A network interface as the kernel describes it (ip -d link).
struct Link {
  std::int32_t index = 0;
  std::int32_t bridge = 0;  // the index of the interface that it is a port of; 0: none
  std::string name;
  std::string kind;  // "veth", "tun", "bond", "vlan"; empty for hardware
};

// Empty if the kernel does not answer.
[[nodiscard]] std::vector<Link> list_links();

// Pure.
[[nodiscard]] bool leads_to_a_network(const std::vector<Link>& links, std::string_view bridge);

}  // namespace weft::topology
