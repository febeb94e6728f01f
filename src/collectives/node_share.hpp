// What one PE does within its node in a reduction between nodes: it combines its mates' sources
// before the nodes exchange them, and gives the mates the result. Only for the files
// between_nodes*.cpp.
//
// Threads: as Team.
#pragma once

#include <cstddef>
#include <cstdint>
#include <vector>

#include "src/collectives/algorithms.hpp"

namespace weft::collectives::between_nodes {

// Elements [first, first + count).
struct Extent {
  std::size_t first = 0;
  std::size_t count = 0;
};

class NodeShare {
 public:
  NodeShare(Team& team, Sides sides, Reducer reducer)
      : team_(team), sides_(sides), reducer_(reducer) {}

  [[nodiscard]] std::size_t bytes(std::size_t count) const {
    return count * reducer_.element_bytes;
  }

  // The place of an element in this PE's `dest`.
  [[nodiscard]] std::byte* dest(std::size_t element) const { return sides_.dest + bytes(element); }

  // Combines the chunk of all mates, in their order, into `sum`.
  Status combine_mates(const Extent& chunk, std::byte* sum);

  // Room for the sums of a chunk until its result is stored to `dest`: the same elements of `dest`,
  // which are registered with the NICs, so that no send registers its source. A result comes when
  // the sums have been received. Other memory if `dest` is the source, too, which is still read.
  [[nodiscard]] std::byte* room_for(const Extent& chunk);

  // Copies the chunk from this PE's `dest` to the mates'.
  Status give_to_mates(const Extent& chunk);

 private:
  Team& team_;
  Sides sides_;
  Reducer reducer_;
  std::vector<std::byte> sums_;  // of reductions in place
  std::vector<std::byte> copy_;  // of a mate whose memory is not mapped
};

// The most elements of one node's share of a chunk that has a slot in the scratch memory for each
// node; 0 if it has no room for that. Pure.
[[nodiscard]] std::size_t share_count_max(std::size_t scratch_bytes,
                                          std::size_t nodes,
                                          std::size_t element_bytes);

// Reduces `slice` among its PEs, one a node, over a tree, which needs scratch memory for `fan_in`
// nodes only.
Status reduce_by_tree(
    Team& team, Sides sides, Reducer reducer, const Extent& slice, std::uint32_t fan_in);

}  // namespace weft::collectives::between_nodes
