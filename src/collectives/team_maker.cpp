#include "src/collectives/team_maker.hpp"

#include <algorithm>
#include <optional>

#include "src/collectives/algorithms.hpp"

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

// What PEs exchange when they create a team; a CollectiveRequest carries it.
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

// The numbers that all members of the new team have free, or a member of the parent whose range
// differs from member 0's.
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

Status exchange_in(Team& team, const CollectiveRequest& mine, std::span<CollectiveRequest> all) {
  const Notes notes{"the creation of a team", std::as_bytes(std::span(&mine, 1)),
                    std::as_writable_bytes(all)};
  return team.members().is_on_one_node() ? on_node::exchange(team, notes)
                                         : between_nodes::exchange(team, notes);
}

}  // namespace

TeamMaker::TeamMaker(rma::Rma& rma,
                     Pe me,
                     std::span<const std::uint32_t> node_of,
                     const Settings& settings)
    : rma_(rma),
      me_(me),
      node_of_(node_of),
      publish_bytes_max_(settings.publish_bytes_max),
      free_ids_(TeamNumbers::all_from(settings.first_id)) {}

// Two exchanges: the ranges and the free team numbers; then whether all members could claim a
// number that all of them have free, and the position of its control words. If another thread
// claimed the number in between, they retry without it. A number is the members' alone: disjoint
// teams may have the same.
TeamMaker::Split TeamMaker::create(const Creators& creators, const TeamRange& range) {
  std::vector<CollectiveRequest> all(creators.count);
  while (true) {
    SplitProposal mine{.range = range, .free_ids = {}};
    {
      const std::unique_lock lock(mutex_);
      mine.free_ids = free_ids_;
    }
    Status status = creators.exchange(mine.encode(), all);
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
    const bool is_member = std::ranges::count(indices_of(range), creators.index) != 0;
    const Claim claimed = is_member ? claim(agreed.free_ids) : Claim{.is_mine = true};
    std::unique_ptr<Team> team = claimed.is_mine ? enter(creators, range, claimed.id) : nullptr;
    const SplitClaim result{
        .has_id = claimed.is_mine,
        .position = team == nullptr ? 0 : Team::published_position(rma_, claimed.id)};
    status = creators.exchange(result.encode(), all);
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
  const auto exchange_all = [&](const CollectiveRequest& mine, std::span<CollectiveRequest> all) {
    return exchange_in(parent, mine, all);
  };
  const auto pe = [&](std::uint32_t index) { return parent.pe(index); };
  return create({parent.size(), parent.index(), exchange_all, pe}, range);
}

MeetingId TeamMaker::make_id() {
  const std::unique_lock lock(mutex_);
  return {me_, ++id_count_};
}

TeamMaker::Split TeamMaker::join(MeetingId id, Meeting::Place place) {
  Meeting meeting(rma_, me_, id, place);
  const auto exchange_all = [&](const CollectiveRequest& mine, std::span<CollectiveRequest> all) {
    return meeting.exchange(mine, all);
  };
  const auto pe = [&](std::uint32_t index) { return meeting.pes()[index]; };
  return create({place.count, place.index, exchange_all, pe},
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
