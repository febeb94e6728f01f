// Reductions of a team that spans nodes, in lanes: one PE of each node has the same slice of the elements. It
// combines its mates' sources. The lane's PEs then exchange shares of the result (reduce-scatter, then allgather):
// each combines one share of all nodes and sends it back to all. So every byte crosses the network twice,
// regardless of the number of nodes. The mates read the result. Data is processed in chunks that fit the scratch
// memory.
//
// The order is fixed, mates first and then nodes, and each element is combined once: the result has the same bits
// on every PE and in every run.
#include <algorithm>
#include <vector>

#include "src/base/error.hpp"
#include "src/collectives/algorithms.hpp"
#include "src/collectives/between_nodes.hpp"

namespace weft::collectives::between_nodes {
namespace {

// Elements [first, first + count).
struct Extent {
  std::size_t first = 0;
  std::size_t count = 0;
};

// Part `index` of `parts` of an extent, in multiples of a cache line.
Extent part_of(const Extent& whole,
               std::size_t parts,
               std::size_t index,
               std::size_t element_bytes) {
  const std::size_t line = kCacheLineBytes / std::min(kCacheLineBytes, element_bytes);
  const std::size_t share = (whole.count / parts + line) / line * line;
  const std::size_t start = std::min(whole.count, index * share);
  return {whole.first + start, std::min(share, whole.count - start)};
}

class Lane {
 public:
  Lane(Team& team, Sides sides, Reducer reducer)
      : team_(team), sides_(sides), reducer_(reducer), nodes_(team.members().nodes().size()) {}

  // The most elements in a chunk: each share fits a slot of the scratch memory, with one slot per node.
  [[nodiscard]] std::size_t chunk_count() const {
    const std::size_t line = kCacheLineBytes / std::min(kCacheLineBytes, reducer_.element_bytes);
    const std::size_t slot = slot_bytes() / reducer_.element_bytes;
    WEFT_CHECK(slot > line, "{} nodes are too many for scratch memory of {} bytes", nodes_,
               team_.scratch().size());
    return (slot - line) * nodes_;
  }

  Status reduce_chunk(const Extent& chunk) {
    partial_.resize(chunk.count * reducer_.element_bytes);
    Status status = combine_mates(chunk);
    if (status == Status::Ok) {
      status = send_shares(chunk);
    }
    const Extent mine = share(chunk, team_.members().node());
    if (status == Status::Ok && mine.count > 0) {
      status = team_.await_arrivals(nodes_ - 1, "reduce", peer_before());
    }
    if (status == Status::Ok) {
      combine_nodes(chunk, mine);
      status = send_result(mine);
    }
    if (status == Status::Ok) {
      status = team_.await_results(results_expected(chunk), "reduce", peer_before());
    }
    const Status sent = team_.rma().quiet(team_.context());
    if (status == Status::Ok) {
      status = give_to_mates(chunk);
    }
    return status == Status::Ok ? sent : status;
  }

 private:
  [[nodiscard]] std::size_t slot_bytes() const {
    return team_.scratch().size() / nodes_ / kCacheLineBytes * kCacheLineBytes;
  }

  [[nodiscard]] Extent share(const Extent& chunk, std::size_t node) const {
    return part_of(chunk, nodes_, node, reducer_.element_bytes);
  }

  [[nodiscard]] std::uint32_t peer(std::size_t node) const {
    return team_.members().nodes()[node][team_.members().lane()];
  }

  [[nodiscard]] Pe peer_before() const {
    return team_.pe(peer((team_.members().node() + nodes_ - 1) % nodes_));
  }

  [[nodiscard]] std::size_t bytes(std::size_t count) const {
    return count * reducer_.element_bytes;
  }

  Status combine_mates(const Extent& chunk) {
    const std::byte* source = sides_.source + bytes(chunk.first);
    Status status = copy_from_mate(team_, team_.members().mates().front(), partial_.data(), source,
                                   partial_.size());
    for (std::size_t i = 1; i < team_.members().mates().size() && status == Status::Ok; ++i) {
      const std::uint32_t mate = team_.members().mates()[i];
      const void* view = team_.view(source, mate);
      if (view == nullptr) {
        copy_.resize(partial_.size());
        status = copy_from_mate(team_, mate, copy_.data(), source, copy_.size());
        view = copy_.data();
      }
      reducer_.combine(partial_.data(), partial_.data(), view, chunk.count);
    }
    return status;
  }

  Status send_shares(const Extent& chunk) {
    Status status = Status::Ok;
    for (std::size_t step = 1; step < nodes_ && status == Status::Ok; ++step) {
      const std::size_t node = (team_.members().node() + step) % nodes_;
      const Extent part = share(chunk, node);
      if (part.count > 0) {
        status =
            send(team_, peer(node), team_.scratch().data() + team_.members().node() * slot_bytes(),
                 {partial_.data() + bytes(part.first - chunk.first), bytes(part.count)});
      }
    }
    return status;
  }

  // Combines this PE's share of all nodes, in node order, into `dest`.
  void combine_nodes(const Extent& chunk, const Extent& mine) {
    const auto input = [&](std::size_t node) -> const std::byte* {
      return node == team_.members().node() ? partial_.data() + bytes(mine.first - chunk.first)
                                            : team_.scratch().data() + node * slot_bytes();
    };
    std::byte* result = sides_.dest + bytes(mine.first);
    if (nodes_ == 1) {
      std::ranges::copy(partial_, result);
      return;
    }
    reducer_.combine(result, input(0), input(1), mine.count);
    for (std::size_t node = 2; node < nodes_; ++node) {
      reducer_.combine(result, result, input(node), mine.count);
    }
  }

  Status send_result(const Extent& mine) {
    const rma::Signal one{
        .word = &team_.control().results.value, .value = 1, .code = rma::AtomicCode::Add};
    std::byte* result = sides_.dest + bytes(mine.first);
    Status status = Status::Ok;
    for (std::size_t step = 1; step < nodes_ && status == Status::Ok && mine.count > 0; ++step) {
      const Pe to = team_.pe(peer((team_.members().node() + step) % nodes_));
      status = team_.rma().put_signal(team_.context(), result, {result, bytes(mine.count)}, one, to,
                                      rma::Blocking::No);
    }
    return status;
  }

  [[nodiscard]] std::uint64_t results_expected(const Extent& chunk) const {
    std::uint64_t count = 0;
    for (std::size_t node = 0; node < nodes_; ++node) {
      count += node != team_.members().node() && share(chunk, node).count > 0 ? 1 : 0;
    }
    return count;
  }

  Status give_to_mates(const Extent& chunk) {
    std::byte* result = sides_.dest + bytes(chunk.first);
    Status status = Status::Ok;
    for (const std::uint32_t mate : team_.members().mates()) {
      if (mate != team_.index() && status == Status::Ok) {
        status = team_.rma().put(team_.context(), result, {result, bytes(chunk.count)},
                                 team_.pe(mate), rma::Blocking::Yes);
      }
    }
    return status;
  }

  Team& team_;
  Sides sides_;
  Reducer reducer_;
  std::size_t nodes_;
  std::vector<std::byte> partial_;
  std::vector<std::byte> copy_;
};

}  // namespace

// If the team has one node whose memory is not mapped, the lane contains all of its PEs, and they have nothing to
// exchange.
Status reduce(Team& team, Sides sides, std::size_t count, Reducer reducer) {
  Status status = team.sync("reduce");
  const std::size_t lanes =
      count * reducer.element_bytes < kLaneBytesMin ? 1 : team.members().lane_count();
  if (status != Status::Ok) {
    return status;
  }
  if (team.members().lane() < lanes) {
    const Extent slice = part_of({0, count}, lanes, team.members().lane(), reducer.element_bytes);
    Lane lane(team, sides, reducer);
    const std::size_t step = lane.chunk_count();
    for (std::size_t at = 0; at < slice.count && status == Status::Ok; at += step) {
      status = lane.reduce_chunk({slice.first + at, std::min(step, slice.count - at)});
    }
  }
  const Status read = finish(team, "reduce");
  return status == Status::Ok ? read : status;
}

}  // namespace weft::collectives::between_nodes
