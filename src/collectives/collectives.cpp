#include "src/collectives/collectives.hpp"

#include <algorithm>

namespace weft::collectives {
namespace {

constexpr std::uint32_t kWorldId = 0;
constexpr std::uint32_t kNodeId = 1;
constexpr std::uint32_t kMachineId = 2;
constexpr std::uint32_t kMachinePeersId = 3;

// Whether the single-node algorithms can be used: all members can load and store the memory named.
bool is_shared(const Team& team, Sides sides) {
  const std::uint32_t neighbour = (team.index() + 1) % team.size();
  return team.members().is_on_one_node() && team.view(sides.dest, neighbour) != nullptr &&
         team.view(sides.source, neighbour) != nullptr;
}

// The PEs with the same number as `me`.
std::vector<Pe> alike(std::span<const std::uint32_t> number_of, Pe me) {
  std::vector<Pe> same;
  for (std::uint32_t pe = 0; pe < number_of.size(); ++pe) {
    if (number_of[pe] == number_of[me.value]) {
      same.emplace_back(pe);
    }
  }
  return same;
}

// By PE: how many lower PEs have the same number.
std::vector<std::uint32_t> ranks_among_alike(std::span<const std::uint32_t> number_of) {
  std::vector<std::uint32_t> ranks;
  for (std::size_t pe = 0; pe < number_of.size(); ++pe) {
    const auto lower = number_of.first(pe);
    ranks.push_back(static_cast<std::uint32_t>(std::ranges::count(lower, number_of[pe])));
  }
  return ranks;
}

}  // namespace

Collectives::Collectives(rma::Rma& rma,
                         Pe me,
                         std::vector<std::uint32_t> node_of,
                         std::span<const std::uint32_t> machine_of,
                         std::int64_t publish_bytes_max)
    : rma_(rma),
      node_of_(std::move(node_of)),
      maker_(rma, me, node_of_, {kMachinePeersId + 1, publish_bytes_max}) {
  const auto predefined = [&](std::uint32_t id, std::span<const std::uint32_t> number_of) {
    return std::make_unique<Team>(
        rma, me, Team::Identity{id, alike(number_of, me), publish_bytes_max}, node_of_);
  };
  world_ = predefined(kWorldId, std::vector<std::uint32_t>(rma.pe_count()));
  node_team_ = predefined(kNodeId, node_of_);
  machine_team_ = predefined(kMachineId, machine_of);
  machine_peers_ = predefined(kMachinePeersId, ranks_among_alike(machine_of));
}

Status Collectives::leave() {
  const Status sync = world_->leave("finalize");
  return sync == Status::Ok ? rma_.quiet(world_->context()) : sync;
}

Status Collectives::barrier_all(rma::Context& context) {
  const Status quiet = rma_.quiet(context);
  const Status sync = this->sync("barrier_all");
  return quiet == Status::Ok ? sync : quiet;
}

Status Collectives::exchange(Team& team,
                             const CollectiveRequest& mine,
                             std::span<CollectiveRequest> all) {
  return exchange(team, {"a collective allocation", std::as_bytes(std::span(&mine, 1)),
                         std::as_writable_bytes(all)});
}

Status Collectives::exchange(Team& team, const Notes& notes) {
  return team.members().is_on_one_node() ? on_node::exchange(team, notes)
                                         : between_nodes::exchange(team, notes);
}

Status Collectives::alltoall(Team& team, Sides sides, std::size_t bytes_per_pe) {
  return is_shared(team, sides) ? on_node::alltoall(team, sides, bytes_per_pe)
                                : between_nodes::alltoall(team, sides, bytes_per_pe);
}

Status Collectives::alltoalls(Team& team, Sides sides, const Strides& strides) {
  return is_shared(team, sides) ? on_node::alltoalls(team, sides, strides)
                                : between_nodes::alltoalls(team, sides, strides);
}

Status Collectives::broadcast(Team& team, Sides sides, std::size_t bytes, std::uint32_t root) {
  return is_shared(team, sides) ? on_node::broadcast(team, sides, bytes, root)
                                : between_nodes::broadcast(team, sides, bytes, root);
}

Status Collectives::fcollect(Team& team, Sides sides, std::size_t bytes) {
  return is_shared(team, sides) ? on_node::fcollect(team, sides, bytes)
                                : between_nodes::fcollect(team, sides, bytes);
}

Status Collectives::collect(Team& team, Sides sides, std::size_t bytes) {
  return is_shared(team, sides) ? on_node::collect(team, sides, bytes)
                                : between_nodes::collect(team, sides, bytes);
}

Status Collectives::reduce(Team& team, Sides sides, std::size_t count, Reducer reducer) {
  return is_shared(team, sides) ? on_node::reduce(team, sides, count, reducer)
                                : between_nodes::reduce(team, sides, count, reducer);
}

Status Collectives::scan(Team& team, Sides sides, std::size_t count, const Scan& scan) {
  return team.members().is_on_one_node() ? on_node::scan(team, sides, count, scan)
                                         : between_nodes::scan(team, sides, count, scan);
}

bool Collectives::is_predefined(const Team* team) const {
  return team == world_.get() || team == node_team_.get() || team == machine_team_.get() ||
         team == machine_peers_.get();
}

bool Collectives::is_team(const Team* team) {
  return is_predefined(team) || maker_.has(team);
}

}  // namespace weft::collectives
