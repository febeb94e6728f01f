#include "moe/src/plan/groups.hpp"

#include <algorithm>

namespace weft::moe::engine {

Groups::Groups(const std::vector<int>& node_of, std::size_t me, bool by_node)
    : by_node_(by_node), me_(me), group_of_(node_of.size()) {
  std::vector<int> names;
  for (const int name : node_of) {
    const auto node = static_cast<std::size_t>(std::ranges::find(names, name) - names.begin());
    if (node == names.size()) {
      names.push_back(name);
      nodes_.emplace_back();
    }
    index_in_node_.push_back(nodes_[node].size());
    nodes_[node].push_back(node_of_.size());
    node_of_.push_back(node);
  }
  const std::size_t here = node_of_[me];
  mates_ = by_node ? nodes_[here] : std::vector{me};
  for (std::size_t rank = 0; rank < node_of_.size(); ++rank) {
    const bool is_alone = !by_node || node_of_[rank] == here;
    if (is_alone) {
      groups_.push_back({rank});
    } else if (index_in_node_[rank] == 0) {
      groups_.push_back(nodes_[node_of_[rank]]);
    }
  }
  for (std::size_t group = 0; group < groups_.size(); ++group) {
    for (const std::size_t rank : groups_[group]) {
      group_of_[rank] = group;
    }
  }
  for (const bool is_here : {false, true}) {
    for (std::size_t i = 0; i < groups_.size(); ++i) {
      const std::size_t group = (group_of_[me] + i) % groups_.size();
      if ((node_of_[groups_[group].front()] == here) == is_here) {
        order_.push_back(group);
        peers_.insert(peers_.end(), groups_[group].begin(), groups_[group].end());
      }
    }
  }
}

std::vector<std::size_t> Groups::relays(std::size_t source,
                                        const std::vector<std::size_t>& ranks,
                                        std::uint64_t call) const {
  const std::size_t turn = nodes_[node_of_[source]].size() * call;
  std::vector<std::size_t> order(ranks);
  std::ranges::rotate(order, order.begin() + static_cast<std::ptrdiff_t>(
                                                 (index_in_node_[source] + turn) % order.size()));
  return order;
}

// Of nodes before `node`, those sources that have the same relay on node `at`.
std::size_t Groups::sources_before(std::size_t node, std::size_t at) const {
  std::size_t sources = 0;
  for (std::size_t other = 0; other < node; ++other) {
    const std::size_t relays = nodes_[at].size();
    sources += other == at ? 0 : (nodes_[other].size() + relays - 1) / relays;
  }
  return sources;
}

std::size_t Groups::place_at_relay(std::size_t source) const {
  return sources_before(node_of_[source], node_of_[me_]) + index_in_node_[source] / mates_.size();
}

std::size_t Groups::sources_max() const {
  std::size_t most = 0;
  for (std::size_t node = 0; node < nodes_.size(); ++node) {
    most = std::max(most, sources_before(nodes_.size(), node));
  }
  return most;
}

std::size_t Groups::mates_max() const {
  return std::ranges::max(nodes_, {}, &std::vector<std::size_t>::size).size();
}

}  // namespace weft::moe::engine
