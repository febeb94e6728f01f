// Which PEs are on one node, that is, can map each other's memory. Every PE computes the same
// answer from the identities of all. Pure apart from node_identity(), which reads /proc once at
// init.
#pragma once

#include <cstdint>
#include <span>
#include <string>
#include <vector>

namespace weft::topology {

struct NodeIdentity {
  // Equal exactly for processes of one boot of one kernel in one network and one PID namespace: a
  // lab's hosts differ in the first, and containers that cannot reach each other's memory by PID in
  // the second.
  std::string id;
  std::string hostname;  // for people; says nothing about sameness
};

// `proc` is /proc but in tests. Falls back to the host's name where the boot id cannot be read.
[[nodiscard]] NodeIdentity node_identity(const std::string& proc = "/proc");

struct NodePlace {
  std::uint32_t node_index = 0;   // nodes are numbered in the order of their first PE
  std::uint32_t local_index = 0;  // among the PEs of the node, in PE order
  std::uint32_t local_count = 0;

  friend bool operator==(const NodePlace&, const NodePlace&) = default;
};

// One place for each PE, given each PE's NodeIdentity::id. node_size > 0 (WEFT_NODE_SIZE) cuts
// every real node into nodes of that many PEs, the last one of which may be smaller. Pure.
[[nodiscard]] std::vector<NodePlace> group_nodes(std::span<const std::string> identities,
                                                 std::uint32_t node_size);

}  // namespace weft::topology
