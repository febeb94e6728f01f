// Determines which PEs are on one node, that is, can map each other's memory. Every PE computes the
// same result from the identities of all PEs.
//
// Pure, except for node_identity(), which reads /proc once at init.
#pragma once

#include <cstdint>
#include <span>
#include <string>
#include <string_view>
#include <vector>

namespace weft::topology {

struct NodeIdentity {
  // Equal if and only if processes share a boot of a kernel, a network namespace, a PID namespace
  // and a host name. A lab's hosts differ in the network namespace; containers that cannot access
  // each other's memory by PID differ in the PID namespace; emulated nodes (Loom), which NCCL and
  // NVSHMEM tell apart by host name, differ in that alone.
  std::string id;
  std::string hostname;  // for display
};

// `proc` is /proc except in tests. Falls back to the host name if the boot id cannot be read.
[[nodiscard]] NodeIdentity node_identity(const std::string& proc = "/proc");

// The part of NodeIdentity::id that is equal if and only if processes share a boot of a kernel and
// a network namespace, in which loopback addresses mean the same. Pure.
[[nodiscard]] std::string network_of(std::string_view id);

// The part of it that is equal if and only if processes share a boot of a kernel. Pure.
[[nodiscard]] std::string machine_of(std::string_view id);

struct NodePlace {
  std::uint32_t node_index = 0;   // nodes are numbered in the order of their first PE
  std::uint32_t local_index = 0;  // index among the PEs of the node, in PE order
  std::uint32_t local_count = 0;

  friend bool operator==(const NodePlace&, const NodePlace&) = default;
};

// The NodePlace of each PE, given each PE's NodeIdentity::id. node_size > 0 (WEFT_NODE_SIZE) splits
// every real node into nodes of that many PEs; the last one may be smaller. Pure.
[[nodiscard]] std::vector<NodePlace> group_nodes(std::span<const std::string> identities,
                                                 std::uint32_t node_size);

}  // namespace weft::topology
