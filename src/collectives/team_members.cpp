#include "src/collectives/team_members.hpp"

#include <algorithm>

#include "src/base/error.hpp"

namespace weft::collectives {

TeamMembers::TeamMembers(Pe me, std::vector<Pe> pes, std::span<const std::uint32_t> node_of)
    : pes_(std::move(pes)), index_(index_of(me)) {
  WEFT_CHECK(index_ < size(), "PE {} is not a member of the team that it joins", me.value);
  find_nodes(node_of);
  for (std::uint32_t distance = 1; distance < size(); ++distance) {
    others_.push_back(pes_[(index_ + size() - distance) % size()]);
  }
}

void TeamMembers::find_nodes(std::span<const std::uint32_t> node_of) {
  std::vector<std::uint32_t> names;
  for (std::uint32_t i = 0; i < size(); ++i) {
    const std::uint32_t name = node_of[pes_[i].value];
    const auto found = std::ranges::find(names, name);
    const auto node = static_cast<std::uint32_t>(found - names.begin());
    if (found == names.end()) {
      names.push_back(name);
      nodes_.emplace_back();
    }
    if (i == index_) {
      node_ = node;
      mate_index_ = static_cast<std::uint32_t>(nodes_[node].size());
    }
    nodes_[node].push_back(i);
  }
  for (const Mates& node : nodes_) {
    leaders_.push_back(pes_[node.front()]);
  }
  slice_count_ = static_cast<std::uint32_t>(std::ranges::min(nodes_, {}, &Mates::size).size());
}

}  // namespace weft::collectives
