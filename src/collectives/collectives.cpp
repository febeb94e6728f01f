#include "src/collectives/collectives.hpp"

#include <algorithm>
#include <optional>

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

// The index in the parent of each member of the new team.
std::vector<std::uint32_t> indices_of(const TeamRange& range) {
  std::vector<std::uint32_t> indices;
  indices.reserve(static_cast<std::size_t>(range.size));
  for (std::int32_t i = 0; i < range.size; ++i) {
    indices.push_back(static_cast<std::uint32_t>(range.start + i * range.stride));
  }
  return indices;
}

std::vector<Pe> members_of(const Team& parent, const TeamRange& range) {
  std::vector<Pe> members;
  for (const std::uint32_t index : indices_of(range)) {
    members.push_back(parent.pe(index));
  }
  return members;
}

// What the members of a team exchange when they split it; a CollectiveRequest carries it.
struct SplitProposal {
  TeamRange range;
  TeamNumbers free_ids;

  [[nodiscard]] CollectiveRequest encode() const {
    const TeamNumbers::Words& ids = free_ids.words();
    return {.kind = pack(range.start, static_cast<std::uint64_t>(range.stride)),
            .bytes = pack(range.size, ids[2]),
            .alignment = ids[0],
            .offset = ids[1]};
  }

  static SplitProposal decode(const CollectiveRequest& request) {
    return {.range = {.start = static_cast<std::int32_t>(request.kind),
                      .stride = static_cast<std::int32_t>(request.kind >> 32U),
                      .size = static_cast<std::int32_t>(request.bytes)},
            .free_ids = TeamNumbers({request.alignment, request.offset, request.bytes >> 32U})};
  }

 private:
  static std::uint64_t pack(std::int32_t low, std::uint64_t high) {
    return static_cast<std::uint32_t>(low) | high << 32U;
  }
};

// The same for the second exchange.
struct SplitClaim {
  bool has_id = false;         // this PE has claimed the number that all have free
  std::uint64_t position = 0;  // the last that it published in the number's control words

  [[nodiscard]] CollectiveRequest encode() const {
    return {.kind = has_id ? 1U : 0U, .offset = position};
  }

  static SplitClaim decode(const CollectiveRequest& request) {
    return {.has_id = request.kind == 1, .position = request.offset};
  }
};

// The numbers that all members of the new team have free, or a member of the parent whose range differs from member 0's.
struct Agreement {
  TeamNumbers free_ids = TeamNumbers::all_from(0);
  std::optional<std::uint32_t> other;
};

Agreement compare(std::span<const CollectiveRequest> proposals) {
  Agreement agreement;
  const TeamRange range = SplitProposal::decode(proposals[0]).range;
  for (std::uint32_t i = 0; i < proposals.size() && !agreement.other; ++i) {
    const SplitProposal proposal = SplitProposal::decode(proposals[i]);
    if (proposal.range != range) {
      agreement.other = i;
    }
  }
  if (!agreement.other) {
    for (const std::uint32_t member : indices_of(range)) {
      agreement.free_ids.keep_those_of(SplitProposal::decode(proposals[member]).free_ids);
    }
  }
  return agreement;
}

bool all_have_id(std::span<const CollectiveRequest> claims) {
  return std::ranges::all_of(
      claims, [](const CollectiveRequest& one) { return SplitClaim::decode(one).has_id; });
}

// The last position that a member of the new team has published.
std::uint64_t last_position(std::span<const CollectiveRequest> claims, const TeamRange& range) {
  std::uint64_t position = 0;
  for (const std::uint32_t member : indices_of(range)) {
    position = std::max(position, SplitClaim::decode(claims[member]).position);
  }
  return position;
}

}  // namespace

Collectives::Collectives(rma::Rma& rma,
                         Pe me,
                         std::vector<std::uint32_t> node_of,
                         std::span<const std::uint32_t> machine_of,
                         std::int64_t publish_bytes_max)
    : rma_(rma), me_(me), node_of_(std::move(node_of)), publish_bytes_max_(publish_bytes_max) {
  const auto predefined = [&](std::uint32_t id, std::span<const std::uint32_t> number_of) {
    return std::make_unique<Team>(
        rma, me, Team::Identity{id, alike(number_of, me), publish_bytes_max}, node_of_);
  };
  world_ = predefined(kWorldId, std::vector<std::uint32_t>(rma.pe_count()));
  node_team_ = predefined(kNodeId, node_of_);
  machine_team_ = predefined(kMachineId, machine_of);
  machine_peers_ = predefined(kMachinePeersId, ranks_among_alike(machine_of));
  free_ids_ = TeamNumbers::all_from(kMachinePeersId + 1);
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

// Two exchanges: the ranges and the free team numbers; then whether all members could claim a number that all of them have
// free, and the position of its control words. If another thread claimed the number in between, the split retries without
// it. A number is the members' alone: disjoint teams may have the same.
Collectives::Split Collectives::split(Team& parent, const TeamRange& range) {
  std::vector<CollectiveRequest> all(parent.size());
  while (true) {
    SplitProposal mine{.range = range, .free_ids = {}};
    {
      const std::unique_lock lock(mutex_);
      mine.free_ids = free_ids_;
    }
    Status status = exchange(parent, mine.encode(), all);
    if (status != Status::Ok) {
      return {.status = status};
    }
    const Agreement agreed = compare(all);
    if (agreed.other) {
      return {.status = Status::Mismatch, .other = *agreed.other};
    }
    if (agreed.free_ids.is_empty()) {
      return {.status = Status::OutOfMemory};
    }
    const bool is_member = std::ranges::count(indices_of(range), parent.index()) != 0;
    const Claim claimed = is_member ? claim(agreed.free_ids) : Claim{.is_mine = true};
    std::unique_ptr<Team> team = claimed.is_mine ? join(parent, range, claimed.id) : nullptr;
    const SplitClaim result{
        .has_id = claimed.is_mine,
        .position = team == nullptr ? 0 : Team::published_position(rma_, claimed.id)};
    status = exchange(parent, result.encode(), all);
    if (status == Status::Ok && all_have_id(all)) {
      if (team == nullptr) {
        return {};
      }
      team->on_node().start(last_position(all, range));
      const std::unique_lock lock(mutex_);
      teams_.push_back(std::move(team));
      return {.team = teams_.back().get()};
    }
    if (team != nullptr) {
      give_back(claimed.id);
    }
    if (status != Status::Ok) {
      return {.status = status};
    }
  }
}

Collectives::Claim Collectives::claim(const TeamNumbers& free) {
  const std::uint32_t id = free.first();
  const std::unique_lock lock(mutex_);
  const bool is_mine = free_ids_.has(id);
  free_ids_.remove(id);
  return {.id = id, .is_mine = is_mine};
}

void Collectives::give_back(std::uint32_t id) {
  const std::unique_lock lock(mutex_);
  free_ids_.add(id);
}

std::unique_ptr<Team> Collectives::join(Team& parent, const TeamRange& range, std::uint32_t id) {
  std::vector<Pe> members = members_of(parent, range);
  if (std::ranges::find(members, me_) == members.end()) {
    return nullptr;
  }
  auto team = std::make_unique<Team>(
      rma_, me_, Team::Identity{id, std::move(members), publish_bytes_max_}, node_of_);
  team->take_over();
  return team;
}

Status Collectives::destroy(Team& team) {
  const Status sync = team.leave("team_destroy");
  const Status quiet = rma_.quiet(team.context());
  give_back(team.id());
  const std::unique_lock lock(mutex_);
  std::erase_if(teams_, [&](const auto& one) { return one.get() == &team; });
  return sync == Status::Ok ? quiet : sync;
}

bool Collectives::is_predefined(const Team* team) const {
  return team == world_.get() || team == node_team_.get() || team == machine_team_.get() ||
         team == machine_peers_.get();
}

bool Collectives::is_team(const Team* team) {
  const std::unique_lock lock(mutex_);
  return is_predefined(team) ||
         std::ranges::find(teams_, team, [](const auto& one) { return one.get(); }) != teams_.end();
}

}  // namespace weft::collectives
