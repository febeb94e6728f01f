// Which ranks share one message of an exchange. A row travels either to each rank that needs it, or
// once to each other node (weft_moe_row_per): then one rank of that node takes it, and all ranks
// there, the mates, read it in its memory.
//
//   rank 1 of node A -> rank 1 of node B    the relay: of the same index, so that no NIC receives
//                                           more than the busiest sends. Where a node has more
//                                           ranks than the source's, relays change with each call,
//                                           so that in turn all of its NICs are used.
//   partial sums: rank 1 of node B -> rank 1 of node A, by the same rule
//
// Everything follows from the numbers of ranks, so all PEs know each other's relays without
// talking.
//
// Pure; threads: any, constant after construction.
#pragma once

#include <cstddef>
#include <cstdint>
#include <vector>

namespace weft::moe::engine {

class Groups {
 public:
  // `node_of`: by rank; any numbers.
  Groups(const std::vector<int>& node_of, std::size_t me, bool by_node);

  [[nodiscard]] bool by_node() const { return by_node_; }

  [[nodiscard]] std::size_t count() const { return groups_.size(); }

  // By their first ranks; the ranks of each ascend.
  [[nodiscard]] const std::vector<std::size_t>& ranks(std::size_t group) const {
    return groups_[group];
  }

  [[nodiscard]] std::size_t of(std::size_t rank) const { return group_of_[rank]; }

  // The order of sending: groups of other nodes first, beginning after this rank's own, so that not
  // all send to the same.
  [[nodiscard]] const std::vector<std::size_t>& order() const { return order_; }

  // The ranks in that order.
  [[nodiscard]] const std::vector<std::size_t>& peers() const { return peers_; }

  // The ranks of this node, ascending, that read each other's messages; without nodes this rank
  // alone.
  [[nodiscard]] const std::vector<std::size_t>& mates() const { return mates_; }

  [[nodiscard]] bool is_mate(std::size_t rank) const {
    return by_node_ && node_of_[rank] == node_of_[me_];
  }

  // Whether what `rank` sends here is for all mates, of whom there is more than one.
  [[nodiscard]] bool is_shared(std::size_t rank) const {
    return mates_.size() > 1 && node_of_[rank] != node_of_[me_];
  }

  [[nodiscard]] std::size_t index_in_node(std::size_t rank) const { return index_in_node_[rank]; }

  // The ranks that may take what `source` sends to one node (`ranks`), the one that does so in this
  // call first, and after it those that stand in when it is lost.
  [[nodiscard]] std::vector<std::size_t> relays(std::size_t source,
                                                const std::vector<std::size_t>& ranks,
                                                std::uint64_t call) const;

  // Sources that may have the same relay here in one call: which of them `source` is, and how many
  // there are at most, on any node.
  [[nodiscard]] std::size_t place_at_relay(std::size_t source) const;
  [[nodiscard]] std::size_t sources_max() const;
  // Ranks of the largest node.
  [[nodiscard]] std::size_t mates_max() const;

 private:
  [[nodiscard]] std::size_t sources_before(std::size_t node, std::size_t at) const;

  bool by_node_;
  std::size_t me_;
  std::vector<std::size_t> node_of_;  // by rank: an index of nodes_
  std::vector<std::size_t> index_in_node_;
  std::vector<std::vector<std::size_t>> nodes_;
  std::vector<std::vector<std::size_t>> groups_;
  std::vector<std::size_t> group_of_;
  std::vector<std::size_t> order_;
  std::vector<std::size_t> peers_;
  std::vector<std::size_t> mates_;
};

}  // namespace weft::moe::engine
