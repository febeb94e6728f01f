#include "src/collectives/team_maker.hpp"

#include <algorithm>
#include <string_view>
#include <vector>

#include "src/collectives/agreed.hpp"

namespace weft::collectives {
namespace {

// The index in the parent of each member of the new team.
std::vector<std::uint32_t> indices_of(const TeamRange& range) {
  std::vector<std::uint32_t> indices;
  indices.reserve(static_cast<std::size_t>(range.size));
  for (std::int32_t i = 0; i < range.size; ++i) {
    indices.push_back(static_cast<std::uint32_t>(range.start + i * range.stride));
  }
  return indices;
}

// A CollectiveRequest has room for the proposal of one PE.
std::uint64_t pack(std::int32_t low, std::uint64_t high) {
  return static_cast<std::uint32_t>(low) | high << 32U;
}

CollectiveRequest encode(const TeamRange& range, const TeamNumbers& free_ids) {
  const TeamNumbers::Words& ids = free_ids.words();
  return {.kind = pack(range.start, static_cast<std::uint64_t>(range.stride)),
          .bytes = pack(range.size, ids[2]),
          .alignment = ids[0],
          .offset = ids[1]};
}

TeamRange range_in(const CollectiveRequest& request) {
  return {.start = static_cast<std::int32_t>(request.kind),
          .stride = static_cast<std::int32_t>(request.kind >> 32U),
          .size = static_cast<std::int32_t>(request.bytes)};
}

TeamNumbers free_ids_in(const CollectiveRequest& request) {
  return TeamNumbers({request.alignment, request.offset, request.bytes >> 32U});
}

}  // namespace

// What PEs propose when they create a team: whether their ranges are the same, and the numbers that
// all members of the new team have free.
struct TeamMaker::Proposal {
  Comparison<TeamRange> ranges;
  TeamNumbers free_ids;

  static void fold(Proposal& into, const Proposal& from) {
    collectives::fold(into.ranges, from.ranges);
    into.free_ids.keep_those_of(from.free_ids);
  }
};

// What they find next.
struct TeamMaker::SplitClaim {
  bool has_id = false;         // all have claimed the number that all have free
  std::uint64_t position = 0;  // the last that one of them published in its control words

  static void fold(SplitClaim& into, const SplitClaim& from) {
    into.has_id = into.has_id && from.has_id;
    into.position = std::max(into.position, from.position);
  }
};

TeamMaker::TeamMaker(rma::Rma& rma,
                     Pe me,
                     std::span<const std::uint32_t> node_of,
                     const Settings& settings)
    : rma_(rma),
      me_(me),
      node_of_(node_of),
      publish_bytes_max_(settings.publish_bytes_max),
      free_ids_(TeamNumbers::all_from(settings.first_id)) {}

// In two steps: the ranges and the free team numbers; then whether all members could claim a number
// that all of them have free, and the position of its control words. If another thread claimed the
// number in between, they retry without it. A number is the members' alone: disjoint teams may have
// the same.
TeamMaker::Split TeamMaker::create(const Creators& creators, const TeamRange& range) {
  const bool is_member = std::ranges::count(indices_of(range), creators.index) != 0;
  while (true) {
    Proposal proposal{.ranges = comparison_of(range, creators.index),
                      .free_ids = TeamNumbers::all_from(0)};
    if (is_member) {
      const std::unique_lock lock(mutex_);
      proposal.free_ids = free_ids_;
    }
    Status status = creators.combine_proposals(proposal);
    if (status != Status::Ok) {
      return {.status = status};
    }
    if (proposal.ranges.differs) {
      return {.status = Status::Mismatch, .other = proposal.ranges.other_index};
    }
    if (proposal.free_ids.is_empty()) {
      return {.status = Status::OutOfMemory};
    }
    const Claim claimed = is_member ? claim(proposal.free_ids) : Claim{.is_mine = true};
    std::unique_ptr<Team> team = claimed.is_mine ? enter(creators, range, claimed.id) : nullptr;
    SplitClaim claims{.has_id = claimed.is_mine,
                      .position = team == nullptr ? 0 : Team::published_position(rma_, claimed.id)};
    status = creators.combine_claims(claims);
    if (status == Status::Ok && claims.has_id) {
      if (team == nullptr) {
        return {};
      }
      team->on_node().start(claims.position);
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

TeamMaker::Claim TeamMaker::claim(const TeamNumbers& free) {
  const std::uint32_t id = free.first();
  const std::unique_lock lock(mutex_);
  const bool is_mine = free_ids_.has(id);
  free_ids_.remove(id);
  return {.id = id, .is_mine = is_mine};
}

void TeamMaker::give_back(std::uint32_t id) {
  const std::unique_lock lock(mutex_);
  free_ids_.add(id);
}

std::unique_ptr<Team> TeamMaker::enter(const Creators& creators,
                                       const TeamRange& range,
                                       std::uint32_t id) {
  std::vector<Pe> members;
  for (const std::uint32_t index : indices_of(range)) {
    members.push_back(creators.pe(index));
  }
  if (std::ranges::find(members, me_) == members.end()) {
    return nullptr;
  }
  auto team = std::make_unique<Team>(
      rma_, me_, Team::Identity{id, std::move(members), publish_bytes_max_}, node_of_);
  team->take_over();
  return team;
}

TeamMaker::Split TeamMaker::split(Team& parent, const TeamRange& range) {
  constexpr std::string_view kName = "the creation of a team";
  const auto proposals = [&](Proposal& mine) { return agree(parent, mine, Proposal::fold, kName); };
  const auto claims = [&](SplitClaim& mine) {
    return agree(parent, mine, SplitClaim::fold, kName);
  };
  const auto pe = [&](std::uint32_t index) { return parent.pe(index); };
  return create({parent.index(), proposals, claims, pe}, range);
}

MeetingId TeamMaker::make_id() {
  const std::unique_lock lock(mutex_);
  return {me_, ++id_count_};
}

TeamMaker::Split TeamMaker::join(MeetingId id, Meeting::Place place) {
  Meeting meeting(rma_, me_, id, place);
  std::vector<CollectiveRequest> all(place.count);
  const auto proposals = [&](Proposal& mine) {
    const Status status = meeting.exchange(encode(mine.ranges.first, mine.free_ids), all);
    for (std::uint32_t i = 0; i < all.size() && status == Status::Ok; ++i) {
      if (i != place.index) {
        Proposal::fold(
            mine, {.ranges = comparison_of(range_in(all[i]), i), .free_ids = free_ids_in(all[i])});
      }
    }
    return status;
  };
  const auto claims = [&](SplitClaim& mine) {
    const Status status =
        meeting.exchange({.kind = mine.has_id ? 1U : 0U, .offset = mine.position}, all);
    for (const CollectiveRequest& one : all) {
      SplitClaim::fold(mine, {.has_id = one.kind == 1, .position = one.offset});
    }
    return status;
  };
  const auto pe = [&](std::uint32_t index) { return meeting.pes()[index]; };
  return create({place.index, proposals, claims, pe},
                {0, 1, static_cast<std::int32_t>(place.count)});
}

Status TeamMaker::destroy(Team& team) {
  const Status sync = team.leave("team_destroy");
  const Status quiet = rma_.quiet(team.context());
  give_back(team.id());
  const std::unique_lock lock(mutex_);
  std::erase_if(teams_, [&](const auto& one) { return one.get() == &team; });
  return sync == Status::Ok ? quiet : sync;
}

bool TeamMaker::has(const Team* team) {
  const std::unique_lock lock(mutex_);
  return std::ranges::find(teams_, team, [](const auto& one) { return one.get(); }) != teams_.end();
}

}  // namespace weft::collectives
