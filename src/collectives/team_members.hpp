// The members of a team, as one of them sees them: an ordered set of PEs, which of them share a
// node, and where this PE stands among them.
//
// Threads: any; constant after construction.
#pragma once

#include <algorithm>
#include <cstdint>
#include <span>
#include <vector>

#include "src/base/ids.hpp"

namespace weft::collectives {

// The members that share a node, as team indices, in order.
using Mates = std::vector<std::uint32_t>;

class TeamMembers {
 public:
  // `me` is one of `pes`. `node_of`, by PE, groups the PEs that can load and store each other's
  // memory.
  TeamMembers(Pe me, std::vector<Pe> pes, std::span<const std::uint32_t> node_of);

  [[nodiscard]] std::uint32_t size() const { return static_cast<std::uint32_t>(pes_.size()); }

  [[nodiscard]] Pe pe(std::uint32_t index) const { return pes_[index]; }

  [[nodiscard]] std::span<const Pe> pes() const { return pes_; }

  // All except this PE, starting with the nearest predecessor.
  [[nodiscard]] std::span<const Pe> others() const { return others_; }

  // size() if `pe` is not a member.
  [[nodiscard]] std::uint32_t index_of(Pe pe) const {
    return static_cast<std::uint32_t>(std::ranges::find(pes_, pe) - pes_.begin());
  }

  // This PE's index.
  [[nodiscard]] std::uint32_t index() const { return index_; }

  // Whether all members can load and store each other's memory.
  [[nodiscard]] bool is_on_one_node() const { return nodes_.size() == 1; }

  // Ordered by first member.
  [[nodiscard]] const std::vector<Mates>& nodes() const { return nodes_; }

  // The index of this PE's node.
  [[nodiscard]] std::uint32_t node() const { return node_; }

  // The members on this PE's node, itself included.
  [[nodiscard]] const Mates& mates() const { return nodes_[node_]; }

  // The first member of each node.
  [[nodiscard]] std::span<const Pe> leaders() const { return leaders_; }

  // This PE's index among its mates.
  [[nodiscard]] std::uint32_t mate_index() const { return mate_index_; }

  // The number of slices in which data travels between nodes: the PEs of the smallest node.
  [[nodiscard]] std::uint32_t slice_count() const { return slice_count_; }

 private:
  void find_nodes(std::span<const std::uint32_t> node_of);

  std::vector<Pe> pes_;
  std::vector<Pe> others_;
  std::vector<Pe> leaders_;
  std::vector<Mates> nodes_;
  std::uint32_t index_ = 0;
  std::uint32_t node_ = 0;
  std::uint32_t mate_index_ = 0;
  std::uint32_t slice_count_ = 0;
};

}  // namespace weft::collectives
