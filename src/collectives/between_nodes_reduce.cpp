// Reductions of a team that spans nodes, in slices: one PE of each node has the same slice of the
// elements. It combines its mates' sources. The PEs of a slice then exchange shares of the result
// (reduce-scatter, then allgather): each combines one share of all nodes and sends it back to all.
// So every byte crosses the network twice, regardless of the number of nodes. The mates read the
// result. Data is processed in chunks that fit the scratch memory. If it has no room for a share of
// each node, the slice uses a tree (between_nodes_tree.cpp).
//
// The order is fixed, mates first and then nodes, and each element is combined once: the result has
// the same bits on every PE and in every run.
#include <algorithm>

#include "src/collectives/algorithms.hpp"
#include "src/collectives/between_nodes.hpp"
#include "src/collectives/node_share.hpp"

namespace weft::collectives::between_nodes {
namespace {

// Of the tree: with more, the chunks are smaller; with less, more of them are under way to the root
// one after the other.
constexpr std::uint32_t kFanIn = 8;

std::size_t elements_in_a_line(std::size_t element_bytes) {
  return kCacheLineBytes / std::min(kCacheLineBytes, element_bytes);
}

std::size_t slot_bytes_for(std::size_t scratch_bytes, std::size_t nodes) {
  return scratch_bytes / nodes / kCacheLineBytes * kCacheLineBytes;
}

// Part `index` of `parts` of an extent, in multiples of a cache line.
Extent part_of(const Extent& whole,
               std::size_t parts,
               std::size_t index,
               std::size_t element_bytes) {
  const std::size_t line = elements_in_a_line(element_bytes);
  const std::size_t share = (whole.count / parts + line) / line * line;
  const std::size_t start = std::min(whole.count, index * share);
  return {whole.first + start, std::min(share, whole.count - start)};
}

class SliceReduction {
 public:
  SliceReduction(Team& team, Sides sides, Reducer reducer)
      : team_(team),
        share_(team, sides, reducer),
        reducer_(reducer),
        nodes_(team.members().nodes().size()) {}

  // The most elements in a chunk: each share fits a slot of the scratch memory, with one slot per
  // node.
  [[nodiscard]] std::size_t chunk_count() const {
    return share_count_max(team_.scratch().size(), nodes_, reducer_.element_bytes) * nodes_;
  }

  Status reduce_chunk(const Extent& chunk) {
    Status status = send_shares(chunk);
    const Extent mine = part(chunk, team_.members().node());
    if (status == Status::Ok && mine.count > 0) {
      status = share_.combine_mates(mine, own_slot());
    }
    if (status == Status::Ok && mine.count > 0) {
      status = team_.await_arrivals(nodes_ - 1, "reduce", peer_before());
    }
    if (status == Status::Ok && mine.count > 0) {
      combine_nodes(mine);
      status = send_result(mine);
    }
    if (status == Status::Ok) {
      status = team_.await_results(results_expected(chunk), "reduce", peer_before());
    }
    const Status sent = team_.rma().quiet(team_.context());
    if (status == Status::Ok) {
      status = share_.give_to_mates(chunk);
    }
    return status == Status::Ok ? sent : status;
  }

 private:
  [[nodiscard]] std::size_t slot_bytes() const {
    return slot_bytes_for(team_.scratch().size(), nodes_);
  }

  [[nodiscard]] Extent part(const Extent& chunk, std::size_t node) const {
    return part_of(chunk, nodes_, node, reducer_.element_bytes);
  }

  [[nodiscard]] std::uint32_t peer(std::size_t node) const {
    return team_.members().nodes()[node][team_.members().mate_index()];
  }

  [[nodiscard]] Pe peer_before() const {
    return team_.pe(peer((team_.members().node() + nodes_ - 1) % nodes_));
  }

  // Of this PE's share, among those of the other nodes.
  [[nodiscard]] std::byte* own_slot() const {
    return team_.scratch().data() + team_.members().node() * slot_bytes();
  }

  // Each share is sent as soon as it is combined.
  Status send_shares(const Extent& chunk) {
    std::byte* sums = share_.room_for(chunk);
    Status status = Status::Ok;
    for (std::size_t step = 1; step < nodes_ && status == Status::Ok; ++step) {
      const std::size_t node = (team_.members().node() + step) % nodes_;
      const Extent part = this->part(chunk, node);
      if (part.count == 0) {
        continue;
      }
      std::byte* sum = sums + share_.bytes(part.first - chunk.first);
      status = share_.combine_mates(part, sum);
      if (status == Status::Ok) {
        status = send(team_, peer(node), own_slot(), {sum, share_.bytes(part.count)});
      }
    }
    return status;
  }

  // Combines this PE's share of all nodes, in node order, into `dest`.
  void combine_nodes(const Extent& mine) {
    const auto input = [&](std::size_t node) -> const std::byte* {
      return team_.scratch().data() + node * slot_bytes();
    };
    std::byte* result = share_.dest(mine.first);
    if (nodes_ == 1) {
      std::copy_n(input(0), share_.bytes(mine.count), result);
      return;
    }
    reducer_.combine(result, input(0), input(1), mine.count);
    for (std::size_t node = 2; node < nodes_; ++node) {
      reducer_.combine(result, result, input(node), mine.count);
    }
  }

  Status send_result(const Extent& mine) {
    std::byte* result = share_.dest(mine.first);
    Status status = Status::Ok;
    for (std::size_t step = 1; step < nodes_ && status == Status::Ok && mine.count > 0; ++step) {
      status = send_result_to(team_, peer((team_.members().node() + step) % nodes_),
                              {result, share_.bytes(mine.count)});
    }
    return status;
  }

  [[nodiscard]] std::uint64_t results_expected(const Extent& chunk) const {
    std::uint64_t count = 0;
    for (std::size_t node = 0; node < nodes_; ++node) {
      count += node != team_.members().node() && part(chunk, node).count > 0 ? 1 : 0;
    }
    return count;
  }

  Team& team_;
  NodeShare share_;
  Reducer reducer_;
  std::size_t nodes_;
};

Status reduce_by_shares(Team& team, Sides sides, Reducer reducer, const Extent& slice) {
  SliceReduction reduction(team, sides, reducer);
  const std::size_t step = reduction.chunk_count();
  Status status = Status::Ok;
  for (std::size_t at = 0; at < slice.count && status == Status::Ok; at += step) {
    status = reduction.reduce_chunk({slice.first + at, std::min(step, slice.count - at)});
  }
  return status;
}

}  // namespace

std::size_t share_count_max(std::size_t scratch_bytes,
                            std::size_t nodes,
                            std::size_t element_bytes) {
  const std::size_t slot = slot_bytes_for(scratch_bytes, nodes) / element_bytes;
  const std::size_t line = elements_in_a_line(element_bytes);
  return slot - std::min(slot, line);
}

// If the team has one node whose memory is not mapped, all of its PEs have the one slice, and they
// have nothing to exchange.
Status reduce(Team& team, Sides sides, std::size_t count, Reducer reducer) {
  Status status = team.sync("reduce");
  const std::size_t slices =
      count * reducer.element_bytes < kSliceBytesMin ? 1 : team.members().slice_count();
  if (status != Status::Ok) {
    return status;
  }
  if (team.members().mate_index() < slices) {
    const Extent slice =
        part_of({0, count}, slices, team.members().mate_index(), reducer.element_bytes);
    const bool has_room = share_count_max(team.scratch().size(), team.members().nodes().size(),
                                          reducer.element_bytes) > 0;
    status = has_room ? reduce_by_shares(team, sides, reducer, slice)
                      : reduce_by_tree(team, sides, reducer, slice, kFanIn);
  }
  const Status read = finish(team, "reduce");
  return status == Status::Ok ? read : status;
}

}  // namespace weft::collectives::between_nodes
