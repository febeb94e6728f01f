// Reductions of a team whose members load and store each other's memory. Short ones: each PE
// publishes its elements and combines those of all. Long ones: each PE combines one slice of all
// sources, in blocks that fit its first-level cache, and stores it into all dests. Always in member
// order, so that the bits are the same on every PE and in every run.
#include <algorithm>

#include "src/collectives/algorithms.hpp"

namespace weft::collectives::on_node {
namespace {

constexpr std::size_t kBlockBytes = std::size_t{8} << 10U;

// result = input(0) op input(1) op ..., where `result` overlaps no input.
template <typename Input>
void combine_all(
    std::uint32_t size, void* result, std::size_t count, const Reducer& reducer, Input&& input) {
  if (size == 1) {
    rma::copy_bytes(result, input(0), count * reducer.element_bytes);
    return;
  }
  reducer.combine(result, input(0), input(1), count);
  for (std::uint32_t mate = 2; mate < size; ++mate) {
    reducer.combine(result, result, input(mate), count);
  }
}

Status reduce_published(Team& team, Sides sides, std::size_t count, const Reducer& reducer) {
  std::byte* slot = nullptr;
  Status status = team.on_node().begin_publication("reduce", &slot);
  if (status != Status::Ok) {
    return status;
  }
  rma::copy_bytes(slot, sides.source, count * reducer.element_bytes);
  team.on_node().publish();
  status = team.on_node().await_all_entries("reduce");
  if (status == Status::Ok) {
    combine_all(team.size(), sides.dest, count, reducer,
                [&](std::uint32_t mate) { return team.on_node().published(mate); });
  }
  return status;
}

// Combines elements [first, last) of all sources into all dests. `dest` may equal `source`: no
// other PE reads these elements.
void reduce_slice(
    Team& team, Sides sides, std::size_t first, std::size_t last, const Reducer& reducer) {
  alignas(kCacheLineBytes) std::byte block[kBlockBytes];
  const std::size_t step = kBlockBytes / reducer.element_bytes;
  for (std::size_t at = first; at < last; at += step) {
    const std::size_t count = std::min(step, last - at);
    const std::size_t offset = at * reducer.element_bytes;
    combine_all(team.size(), block, count, reducer, [&](std::uint32_t mate) {
      return static_cast<const std::byte*>(team.view(sides.source + offset, mate));
    });
    for (std::uint32_t step_to = 0; step_to < team.size(); ++step_to) {
      const std::uint32_t mate = (team.index() + step_to) % team.size();
      rma::copy_bytes(team.view(sides.dest + offset, mate), block, count * reducer.element_bytes);
    }
  }
}

}  // namespace

Status reduce(Team& team, Sides sides, std::size_t count, Reducer reducer) {
  const std::size_t bytes = count * reducer.element_bytes;
  if (team.publishes(Collective::Reduce, bytes)) {
    return reduce_published(team, sides, count, reducer);
  }
  team.on_node().enter();
  if (const Status status = team.on_node().await_all_entries("reduce"); status != Status::Ok) {
    return status;
  }
  // Slices are multiples of a cache line, so that no two PEs write to the same line.
  const std::size_t line = kCacheLineBytes / std::min(kCacheLineBytes, reducer.element_bytes);
  const std::size_t share = (count / team.size() + line) / line * line;
  const std::size_t first = std::min(count, team.index() * share);
  reduce_slice(team, sides, first, std::min(count, first + share), reducer);
  team.on_node().show_word(&TeamControl::done);
  return team.on_node().await_all_words(&TeamControl::done, "reduce");
}

}  // namespace weft::collectives::on_node
