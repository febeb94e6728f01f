// Reductions of teams with so many nodes that the scratch memory has no room for a share of each:
// over a tree of the slice's PEs. Each combines its mates' sources with the sums of its children,
// in their order, and sends the sum to its parent. The root's result goes down the same way. A
// child sends its next chunk when it has the result of the last one, so its parent has read that.
#include <algorithm>
#include <span>

#include "src/collectives/between_nodes.hpp"
#include "src/collectives/node_share.hpp"

namespace weft::collectives::between_nodes {
namespace {

constexpr std::string_view kName = "reduce";

// The children of node n are nodes n * fan_in + 1 to n * fan_in + fan_in.
class Tree {
 public:
  Tree(Team& team, Sides sides, Reducer reducer, std::uint32_t fan_in)
      : team_(team),
        share_(team, sides, reducer),
        reducer_(reducer),
        fan_in_(fan_in),
        node_count_(static_cast<std::uint32_t>(team.members().nodes().size())),
        first_child_(static_cast<std::uint32_t>(std::min<std::uint64_t>(
            std::uint64_t{team.members().node()} * fan_in + 1, node_count_))),
        child_count_(std::min(fan_in, node_count_ - first_child_)) {}

  // The most elements in a chunk: the sum of each child has a slot of the scratch memory.
  [[nodiscard]] std::size_t chunk_count() const { return slot_bytes() / reducer_.element_bytes; }

  Status reduce_chunk(const Extent& chunk) {
    std::byte* sum = share_.room_for(chunk);
    Status status = share_.combine_mates(chunk, sum);
    if (status == Status::Ok) {
      status = team_.await_arrivals(child_count_, kName, whom(first_child_));
    }
    if (status == Status::Ok) {
      combine_children(chunk, sum);
      status = is_root() ? Status::Ok : exchange_with_parent({sum, share_.bytes(chunk.count)});
    }
    if (status == Status::Ok) {
      status = send_result(chunk);
    }
    const Status sent = team_.rma().quiet(team_.context());
    if (status == Status::Ok) {
      status = share_.give_to_mates(chunk);
    }
    return status == Status::Ok ? sent : status;
  }

 private:
  [[nodiscard]] bool is_root() const { return team_.members().node() == 0; }

  [[nodiscard]] std::size_t slot_bytes() const {
    return team_.scratch().size() / fan_in_ / kCacheLineBytes * kCacheLineBytes;
  }

  [[nodiscard]] std::byte* slot(std::uint32_t child) const {
    return team_.scratch().data() + child * slot_bytes();
  }

  // The PE of this slice on a node.
  [[nodiscard]] std::uint32_t peer(std::uint32_t node) const {
    return team_.members().nodes()[node][team_.members().mate_index()];
  }

  // The PE that a long wait reports.
  [[nodiscard]] Pe whom(std::uint32_t node) const {
    return team_.pe(node < node_count_ ? peer(node) : team_.index());
  }

  void combine_children(const Extent& chunk, std::byte* sum) {
    for (std::uint32_t child = 0; child < child_count_; ++child) {
      reducer_.combine(sum, sum, slot(child), chunk.count);
    }
    if (is_root() && sum != share_.dest(chunk.first)) {
      std::copy_n(sum, share_.bytes(chunk.count), share_.dest(chunk.first));
    }
  }

  Status exchange_with_parent(std::span<const std::byte> sum) {
    const std::uint32_t place = team_.members().node() - 1;
    const std::uint32_t parent = place / fan_in_;
    const Status status = send(team_, peer(parent), slot(place % fan_in_), sum);
    return status == Status::Ok ? team_.await_results(1, kName, whom(parent)) : status;
  }

  Status send_result(const Extent& chunk) {
    std::byte* result = share_.dest(chunk.first);
    Status status = Status::Ok;
    for (std::uint32_t child = 0; child < child_count_ && status == Status::Ok; ++child) {
      status =
          send_result_to(team_, peer(first_child_ + child), {result, share_.bytes(chunk.count)});
    }
    return status;
  }

  Team& team_;
  NodeShare share_;
  Reducer reducer_;
  std::uint32_t fan_in_;
  std::uint32_t node_count_;
  std::uint32_t first_child_;
  std::uint32_t child_count_;
};

}  // namespace

Status reduce_by_tree(
    Team& team, Sides sides, Reducer reducer, const Extent& slice, std::uint32_t fan_in) {
  Tree tree(team, sides, reducer, fan_in);
  const std::size_t step = tree.chunk_count();
  Status status = Status::Ok;
  for (std::size_t at = 0; at < slice.count && status == Status::Ok; at += step) {
    status = tree.reduce_chunk({slice.first + at, std::min(step, slice.count - at)});
  }
  return status;
}

}  // namespace weft::collectives::between_nodes
