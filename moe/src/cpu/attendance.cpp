#include "moe/src/cpu/attendance.hpp"

#include <weft/extension.h>

#include <algorithm>
#include <iterator>

#include "moe/src/plan/failure.hpp"
#include "src/base/error.hpp"

namespace weft::moe::engine {
namespace {

// A rank whose message is late because of another begins its own wait up to a timeout after this
// one, waits that long for ranks of its node, and as long again for what it then does; the rest is
// for the program between.
constexpr double kLaterTimeouts = 3;

bool contains(const std::vector<std::size_t>& ranks, std::size_t rank) {
  return std::ranges::find(ranks, rank) != ranks.end();
}

std::vector<bool> flags_of(const std::vector<std::size_t>& inlets, std::size_t count) {
  std::vector<bool> flags(count);
  for (const std::size_t inlet : inlets) {
    flags[inlet] = true;
  }
  return flags;
}

// A set of ranks, as a message carries it.
using Bits = std::array<std::uint64_t, 4>;

void add(Bits& bits, std::size_t rank) {
  bits[rank / 64] |= std::uint64_t{1} << rank % 64;
}

bool has(const Bits& bits, std::size_t rank) {
  return (bits[rank / 64] >> rank % 64 & 1) != 0;
}

}  // namespace

Attendance::Attendance(const weft_moe_config& config,
                       const Ranks& ranks,
                       const Groups& groups,
                       const Timeouts& timeouts,
                       std::function<bool()> has_ended)
    : ranks_(ranks),
      groups_(groups),
      timeouts_(timeouts),
      breaks_(config.on_timeout == WEFT_MOE_ERROR),
      active_(ranks.count(), true),
      has_ended_(std::move(has_ended)) {}

Channel::IfLost Attendance::if_lost() const {
  return breaks_ ? Channel::IfLost::End : Channel::IfLost::FullTime;
}

bool Attendance::is_group_active(std::size_t group) const {
  return std::ranges::any_of(groups_.ranks(group), [&](auto rank) { return active_[rank]; });
}

void Attendance::receive(Channel& channel,
                         std::string_view step,
                         std::int32_t mode,
                         Channel::Visit visit) {
  std::vector<std::size_t> missing = wait(channel, active_, 1, if_lost(), visit);
  if (!missing.empty()) {
    missing = recover(channel, missing, visit);
  }
  note(step, missing);
  throw_if_broken();
  for (std::size_t rank = 0; rank < ranks_.count(); ++rank) {
    if (active_[rank]) {
      check_message(channel, rank, mode);
    }
  }
}

void Attendance::receive_groups(Channel& channel, std::string_view step, std::int32_t mode) {
  absorb_groups(channel, step);
  throw_if_broken();
  for (std::size_t group = 0; group < groups_.count(); ++group) {
    if (is_group_active(group)) {
      check_message(channel, group, mode);
    }
  }
}

void Attendance::receive_mates(Channel& channel, std::string_view step, double timeouts) {
  std::vector<bool> mates(ranks_.count());
  for (const std::size_t mate : groups_.mates()) {
    mates[mate] = active_[mate];
  }
  note(step, wait(channel, mates, timeouts, if_lost()));
}

std::array<std::uint64_t, 4> Attendance::missing_mates() const {
  Bits bits{};
  for (std::size_t mate = 0; mate < groups_.mates().size(); ++mate) {
    if (!active_[groups_.mates()[mate]]) {
      add(bits, mate);
    }
  }
  return bits;
}

std::array<std::uint64_t, 4> Attendance::missing_bits() const {
  Bits bits{};
  for (std::size_t rank = 0; rank < std::min(active_.size(), kMatesMax); ++rank) {
    if (!active_[rank]) {
      add(bits, rank);
    }
  }
  return bits;
}

void Attendance::leave_out(const std::array<std::uint64_t, 4>& missing, std::string_view step) {
  std::vector<std::size_t> ranks;
  for (std::size_t rank = 0; rank < std::min(active_.size(), kMatesMax); ++rank) {
    if (active_[rank] && has(missing, rank)) {
      ranks.push_back(rank);
    }
  }
  note(step, ranks);
}

void Attendance::leave_out(std::size_t rank) {
  if (breaks_) {
    fail(Status::InvalidArgument,
         "the exchange was made to end when a rank is missing; make it with WEFT_MOE_MASK "
         "(on_timeout=\"mask\") to leave one out");
  }
  note("", {rank});
}

// What a rank wrote late, where the others no longer expect it, is complete before any of them
// begins the next call.
void Attendance::rejoin(weft_team_t team, std::span<std::uint64_t*> counts) {
  using Numbers = std::array<std::uint64_t, 12>;
  Numbers mine{};
  WEFT_CHECK(channels_.size() + counts.size() <= mine.size(), "{} channels", channels_.size());
  for (std::size_t i = 0; i < channels_.size(); ++i) {
    channels_[i]->settle(std::vector<bool>(ranks_.count(), true));
    mine[i] = channels_[i]->call();
  }
  for (std::size_t i = 0; i < counts.size(); ++i) {
    mine[channels_.size() + i] = *counts[i];
  }
  std::vector<Numbers> all(ranks_.count());
  check(weft_team_exchange(team, mine.data(), sizeof mine, all.data()));
  for (const auto& theirs : all) {
    std::ranges::transform(mine, theirs, mine.begin(),
                           [](std::uint64_t a, std::uint64_t b) { return std::max(a, b); });
  }
  for (std::size_t i = 0; i < channels_.size(); ++i) {
    channels_[i]->go_on(mine[i], true);
  }
  for (std::size_t i = 0; i < counts.size(); ++i) {
    *counts[i] = mine[channels_.size() + i];
  }
  active_.assign(ranks_.count(), true);
  broken_.clear();
}

std::vector<std::size_t> Attendance::wait(Channel& channel,
                                          const std::vector<bool>& active,
                                          double timeouts,
                                          Channel::IfLost if_lost,
                                          Channel::Visit visit,
                                          Channel::Stops stops) {
  const auto ends = [&] { return has_ended_() || stops(); };
  std::vector<std::size_t> missing =
      channel.wait(active, timeouts * timeouts_.seconds(), if_lost, visit, ends);
  if (!missing.empty() && has_ended_()) {
    throw Ended{};
  }
  return missing;
}

// Of `missing`, those whose own fault it is.
std::vector<std::size_t> Attendance::recover(Channel& channel,
                                             const std::vector<std::size_t>& missing,
                                             Channel::Visit visit) {
  if (!groups_.by_node()) {
    return breaks_ ? missing : await_late(channel, missing, visit);
  }
  std::vector<std::size_t> at_fault;
  std::vector<std::size_t> cut_off;  // perhaps
  for (const std::size_t rank : missing) {
    const auto relays = groups_.relays(rank, groups_.mates(), channel.call());
    const bool may_be = groups_.is_mate(rank) ? false
                        : breaks_ ? groups_.is_shared(rank) && contains(missing, relays.front())
                                  : true;
    (may_be ? cut_off : at_fault).push_back(rank);
  }
  if (breaks_) {
    return at_fault;
  }
  send_elsewhere(missing);
  const auto still = wait(channel, flags_of(cut_off, ranks_.count()), kLaterTimeouts,
                          Channel::IfLost::FullTime, visit);
  at_fault.insert(at_fault.end(), still.begin(), still.end());
  return at_fault;
}

// A rank that died may have reached some ranks and not others. Those wait for it in an earlier step
// for a timeout, so they are late in this one by as much, and are given one more. Of `missing`,
// those that still do not come. A rank that alone is left when all others have come is the one they
// waited for, unless that one is known.
std::vector<std::size_t> Attendance::await_late(Channel& channel,
                                                const std::vector<std::size_t>& missing,
                                                Channel::Visit visit) {
  bool is_known = false;
  for (std::size_t rank = 0; rank < ranks_.count(); ++rank) {
    is_known = is_known || (active_[rank] && channel.is_lost(rank));
  }
  std::vector<std::size_t> at_fault;
  std::vector<std::size_t> late;  // perhaps
  for (const std::size_t rank : missing) {
    (channel.is_lost(rank) ? at_fault : late).push_back(rank);
  }
  std::size_t left = late.size();
  const auto count = [&](std::size_t inlet) {
    visit(inlet);
    --left;
  };
  const auto stops = [&] { return !is_known && left <= 1; };
  const auto still =
      wait(channel, flags_of(late, ranks_.count()), 1, Channel::IfLost::FullTime, count, stops);
  at_fault.insert(at_fault.end(), still.begin(), still.end());
  return at_fault;
}

// What this rank sent to nodes of which a rank is missing may have died with the one that took it.
void Attendance::send_elsewhere(const std::vector<std::size_t>& missing) {
  const auto me = static_cast<std::size_t>(ranks_.me);
  for (std::size_t group = 0; group < groups_.count(); ++group) {
    const std::vector<std::size_t>& ranks = groups_.ranks(group);
    if (std::ranges::any_of(ranks, [&](auto rank) { return contains(missing, rank); })) {
      for (Channel* relayed : relayed_) {
        relayed->send_elsewhere(group, groups_.relays(me, ranks, relayed->call()));
      }
    }
  }
}

std::vector<std::size_t> Attendance::missing_in_groups(Channel& channel) {
  std::vector<bool> awaited(groups_.count());
  for (std::size_t rank = 0; rank < ranks_.count(); ++rank) {
    awaited[groups_.of(rank)] = awaited[groups_.of(rank)] || active_[rank];
  }
  std::vector<std::size_t> groups = wait(channel, awaited, 1, if_lost());
  if (!groups_.by_node() && !breaks_) {  // each rank is a group, under its own number
    groups = await_late(channel, groups, Channel::kNoVisit);
  }
  std::vector<std::size_t> far;
  std::vector<std::size_t> missing;
  for (const std::size_t group : groups) {
    if (groups_.by_node() && !groups_.is_mate(groups_.ranks(group).front())) {
      far.push_back(group);
      missing.insert(missing.end(), groups_.ranks(group).begin(), groups_.ranks(group).end());
    }
  }
  if (!far.empty()) {
    if (!breaks_) {
      send_elsewhere(missing);
    }
    const auto still = wait(channel, flags_of(far, groups_.count()), kLaterTimeouts, if_lost());
    std::erase_if(
        groups, [&](std::size_t group) { return contains(far, group) && !contains(still, group); });
  }
  missing.clear();
  for (std::size_t rank = 0; rank < ranks_.count(); ++rank) {
    const std::size_t group = groups_.of(rank);
    const std::size_t index = groups_.index_in_node(rank);
    const bool is_silent = contains(groups, group);
    const bool is_left_out = awaited[group] && !is_silent && groups_.ranks(group).size() > 1 &&
                             has(channel.message(group).missing, index);
    if (active_[rank] && (is_silent || is_left_out)) {
      missing.push_back(rank);
    }
  }
  return missing;
}

void Attendance::note(std::string_view step, const std::vector<std::size_t>& missing) {
  if (!missing.empty() && breaks_ && broken_.empty()) {
    broken_ = fmt::format(
        "{}: nothing came from {} of {} within {} s; look at what these PEs do, or raise the "
        "timeout",
        step, ranks_.names(missing), ranks_.count(), timeouts_.seconds());
  }
  std::vector<std::size_t> fresh;
  std::ranges::copy_if(missing, std::back_inserter(fresh),
                       [&](auto rank) { return active_[rank]; });
  if (!fresh.empty() && !breaks_ && !step.empty()) {
    weft_log(
        WEFT_LOG_WARN,
        fmt::format("{}: nothing came from {} of {} within {} s, here or at another PE; the "
                    "exchange goes on without these PEs, until weft_moe_rejoin takes them back",
                    step, ranks_.names(fresh), ranks_.count(), timeouts_.seconds())
            .c_str());
  }
  for (const std::size_t rank : missing) {
    active_[rank] = false;
    for (Channel* channel : channels_) {
      channel->drop(rank);
    }
  }
}

void Attendance::throw_if_broken() const {
  if (!broken_.empty()) {
    fail(Status::Timeout, "{}", broken_);
  }
}

void Attendance::check_message(const Channel& channel, std::size_t inlet, std::int32_t mode) const {
  if (channel.message(inlet).mode != mode) {
    throw Differs{ranks_.pes[channel.sender(inlet)]};
  }
}

}  // namespace weft::moe::engine
