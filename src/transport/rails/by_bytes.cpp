// The chooser of the policies that count bytes. docs/decisions/0002-balanced-policy.md says what was tried.
#include <algorithm>
#include <cmath>
#include <limits>

#include "src/transport/rails/allowed_rails.hpp"
#include "src/transport/rails/choosers.hpp"

namespace weft::transport::rails {
namespace {

// How far the peer's rail to which one of ours goes may be ahead of the others in a burst. On the slowest of the lab
// 256 KiB or 1 MiB, where flows change over while others do not yet: 0.70 of the rails instead of 0.94.
constexpr double kLeadBytesMax = 4.0 * 1024 * 1024;
// What is less than this apart is even: a few signals do not change whose turn it is.
constexpr std::uint64_t kGrainBytes = 4096;
// Parts that are so close to a whole number count as it.
constexpr double kFitSlack = 0.125;
// So many operations for each rail even out by themselves between sides that differ in rails: each one whole is fewer
// connections at once (an all-to-all of 64 KiB, 8 for each rail, 4 NICs against 3: 0.58 of the rails instead of 0.49).
constexpr double kManyOperations = 4;
// A rail with less than this share of its window on the way is about to run dry.
constexpr std::uint64_t kStarvingDivisor = 4;

// When the rail would be done with what it has had in this burst and `bytes` more, on the scale of the others.
double load_with(const RailState& rail, std::uint64_t bytes) {
  const std::uint64_t before = (rail.sent_bytes + rail.awaited_bytes) / kGrainBytes * kGrainBytes;
  return static_cast<double>(before + bytes) / rail.weight;
}

bool has_room(const RailState& rail, std::uint64_t bytes) {
  return rail.outstanding_bytes == 0 || rail.outstanding_bytes + bytes <= rail.window_bytes;
}

bool is_starving(const RailState& rail) {
  return rail.outstanding_bytes < rail.window_bytes / kStarvingDivisor;
}

// Which rail takes the next `bytes`.
struct Search {
  std::span<const RailState> side;
  LinkMask mask = 0;
  std::uint32_t start = 0;
  std::uint64_t bytes = 0;
};

// The rail that would be done first; ties go to the first from `start` on.
template <typename IsCandidate>
std::optional<std::uint32_t> first_done(const Search& search, IsCandidate is_candidate) {
  std::optional<std::uint32_t> best;
  double least = 0;
  for (std::uint32_t k = 0; k < count_of(search.side); ++k) {
    const std::uint32_t i = (search.start + k) % count_of(search.side);
    const double load = load_with(search.side[i], search.bytes);
    if (((search.mask >> i) & 1U) != 0 && is_candidate(search.side[i]) && (!best || load < least)) {
      best = i;
      least = load;
    }
  }
  return best;
}

std::optional<std::uint32_t> first_done(const Search& search) {
  return first_done(search, [](const RailState&) { return true; });
}

// The rail with the least on its way; ties go to the first from `start` on.
std::optional<std::uint32_t> least_outstanding(const Search& search) {
  std::optional<std::uint32_t> best;
  for (std::uint32_t k = 0; k < count_of(search.side); ++k) {
    const std::uint32_t i = (search.start + k) % count_of(search.side);
    if (((search.mask >> i) & 1U) != 0 &&
        (!best || search.side[i].outstanding_bytes < search.side[*best].outstanding_bytes)) {
      best = i;
    }
  }
  return best;
}

bool has_slow_rail(std::span<const RailState> side) {
  return std::ranges::any_of(side, [](const RailState& rail) { return rail.weight < 1; });
}

// The peer's rails to which none of ours but `local` goes.
LinkMask without_paired(const PlanInput& input, std::uint32_t local, LinkMask remotes) {
  for (std::uint32_t other = 0; other < input.pairing.size(); ++other) {
    if (other != local && input.pairing[other] != kUnpaired) {
      remotes &= ~(LinkMask{1} << input.pairing[other]);
    }
  }
  return remotes;
}

// The rail to which `local` has gone in this burst; or in the last one, if one of ours is slow: whichever of two
// rails is slow, it is the same of ours that carries less.
std::uint32_t usual_remote(const PlanInput& input, std::uint32_t local) {
  const std::uint32_t now = input.pairing.empty() ? kUnpaired : input.pairing[local];
  const bool lasts = now == kUnpaired && input.keeps_pairs && !input.last_pairing.empty() &&
                     has_slow_rail(input.local);
  const std::uint32_t usual = lasts ? input.last_pairing[local] : now;
  return lasts && std::ranges::find(input.pairing, usual) != input.pairing.end() ? kUnpaired
                                                                                 : usual;
}

// The rail to which `local` goes, while it is not far ahead of the others: few connections are busy at once, and
// those that send to one peer do not stray into each other's way. Then the one that would be done first, of those
// to which no other of ours goes if there is one.
std::optional<std::uint32_t> remote_in_turn(const PlanInput& input,
                                            std::uint32_t local,
                                            std::uint64_t bytes) {
  Search remotes{.side = input.remote,
                 .mask = allowed_remotes(input, local),
                 .start = input.remote_start,
                 .bytes = bytes};
  const auto first = first_done(remotes);
  const std::uint32_t usual = usual_remote(input, local);
  if (!first || usual == *first) {
    return first;
  }
  // Where one of ours is slow, its partner carries less as well: no reason for the others to go there.
  const double lead_max =
      has_slow_rail(input.local) ? std::numeric_limits<double>::max() : kLeadBytesMax;
  const double lead = input.keeps_pairs ? lead_max : 0;
  const auto is_close = [&](std::uint32_t rail) {
    return load_with(input.remote[rail], bytes) <= load_with(input.remote[*first], bytes) + lead;
  };
  if (usual != kUnpaired && ((remotes.mask >> usual) & 1U) != 0 && is_close(usual)) {
    return usual;
  }
  remotes.mask = without_paired(input, local, remotes.mask);
  const auto free = first_done(remotes);
  return free && is_close(*free) ? free : first;
}

double share_by_weight(const PlanInput& input, std::uint32_t local) {
  double weights = 0;
  for (const RailState& rail : input.local) {
    weights += rail.healthy ? rail.weight : 0.0;
  }
  return input.local[local].weight / weights;
}

// What local rail `local` carries in this burst if all carry the same for their weights, with what is still
// expected to come.
double share_in_burst(const PlanInput& input, std::uint32_t local, Rest rest) {
  double sent = 0;
  for (const RailState& rail : input.local) {
    sent += rail.healthy ? static_cast<double>(rail.sent_bytes) : 0.0;
  }
  const auto left = static_cast<double>(std::max(input.expected_bytes, rest.total - rest.offset));
  return (sent + left) * share_by_weight(input, local);
}

// What is left of that.
double room_in_burst(const PlanInput& input, std::uint32_t local, Rest rest) {
  const RailState& rail = input.local[local];
  return share_in_burst(input, local, rest) -
         static_cast<double>(rail.sent_bytes + rail.awaited_bytes);
}

// In how many equal parts the rest goes over as many rails; 0: every rail takes its part by weight.
//
// One, while there is room for all of it in the rail's share of the burst. If the burst is less than one such
// operation for each rail, as many as fill the shares exactly. Otherwise this is what is left over when all
// rails have had the same, and all take part: operations that are cut unevenly meet unevenly at their targets.
// If sizes differ, all take part in every one: nobody can tell which operations will make up for which (Pareto
// sizes up to 1 MiB, an all-to-all of 8 PEs with 4 NICs each: 0.67 of the rails instead of 0.19).
double parts_of(const PlanInput& input, std::uint32_t local, Rest rest) {
  if (rest.offset > 0 && rest.lane.is_striped) {
    return 0;
  }
  const auto total = static_cast<double>(rest.total);
  const double share = share_in_burst(input, local, rest);
  const bool is_irregular =
      !input.is_regular || (!input.is_even && share < total * kManyOperations);
  if (is_irregular && rest.total >= count_of(input.local) * input.stripe_bytes_min) {
    return 0;
  }
  if (share >= total * (1 - kFitSlack)) {
    const double room = room_in_burst(input, local, rest);
    return static_cast<double>(rest.total - rest.offset) <= room + total * kFitSlack ? 1 : 0;
  }
  const double parts = total / share;
  return std::abs(parts - std::round(parts)) <= kFitSlack ? std::round(parts) : 0;
}

// How much of the operation goes over this pair of rails: a part, or what the rail has room for.
Lane open_lane(const PlanInput& input, RailPair pair, Rest rest) {
  const std::uint32_t local = pair.local.value;
  const auto total = static_cast<double>(rest.total);
  const double parts = parts_of(input, local, rest);
  const double room = room_in_burst(input, local, rest);
  const bool fills = room > 0 && has_slow_rail(input.local);
  const double striped = fills ? std::min(room, total) : total * share_by_weight(input, local);
  const double wanted = parts == 0 ? striped : total / parts;
  const std::uint64_t bytes = (static_cast<std::uint64_t>(wanted) + 63U) & ~std::uint64_t{63};
  return {.local = pair.local,
          .remote = pair.remote,
          .end = rest.offset + std::max(bytes, input.stripe_bytes_min),
          .is_striped = parts == 0};
}

bool is_in_lane(const PlanInput& input, Rest rest) {
  return rest.offset > 0 && rest.offset < rest.lane.end &&
         ((allowed_remotes(input, rest.lane.local.value) >> rest.lane.remote.value) & 1U) != 0;
}

Piece piece_of(const PlanInput& input, Rest rest, Lane lane) {
  const std::uint64_t left = rest.total - rest.offset;
  std::uint64_t bytes =
      std::min(lane.end - rest.offset, std::max(input.piece_bytes_max, input.stripe_bytes_min));
  if (bytes + input.stripe_bytes_min / 2 >= left) {
    bytes = left;  // a rest too small to be worth an operation of its own goes with this piece
  }
  return {lane.local, lane.remote, rest.offset, bytes, lane};
}

// Whole, and no window holds it back.
std::optional<Piece> next_small(const PlanInput& input, const Search& locals, Rest rest) {
  const auto local = first_done(locals);
  const auto remote = local ? remote_in_turn(input, *local, locals.bytes) : std::nullopt;
  return remote ? std::optional(Piece{RailIndex(*local),
                                      RailIndex(*remote),
                                      rest.offset,
                                      rest.total - rest.offset,
                                      {}})
                : std::nullopt;
}

Search local_search(const PlanInput& input, Rest rest) {
  LinkMask mask = 0;
  for (std::uint32_t local = 0; local < count_of(input.local); ++local) {
    mask |= allowed_remotes(input, local) != 0 ? LinkMask{1} << local : 0;
  }
  return {.side = input.local,
          .mask = mask,
          // Where our rail names the peer's, it is the one that must differ between senders.
          .start = input.policy->names_remote ? input.remote_start : input.local_start,
          .bytes = std::min(rest.total - rest.offset, input.piece_bytes_max)};
}

std::optional<std::uint32_t> local_in_turn(const PlanInput& input,
                                           const Search& locals,
                                           Rest rest) {
  return is_in_lane(input, rest) ? std::optional(rest.lane.local.value) : first_done(locals);
}

}  // namespace

// If the queue of the rail in turn is full, everybody waits for it, so that luck in the network does not
// become imbalance; except that no rail may run dry meanwhile, so that a slow rail does not hold up the others.
std::optional<Piece> next_by_bytes(const PlanInput& input, Rest rest) {
  const Search locals = local_search(input, rest);
  if (rest.total < input.stripe_bytes_min) {
    return next_small(input, locals, rest);
  }
  auto local = local_in_turn(input, locals, rest);
  if (local && !has_room(input.local[*local], locals.bytes)) {
    local = first_done(locals, is_starving);
  } else if (local && is_in_lane(input, rest)) {
    return piece_of(input, rest, rest.lane);
  }
  const auto remote = local ? remote_in_turn(input, *local, locals.bytes) : std::nullopt;
  return remote ? std::optional(piece_of(
                      input, rest, open_lane(input, {RailIndex(*local), RailIndex(*remote)}, rest)))
                : std::nullopt;
}

// The rails on which the least of ours is on the way, so the peer's rail with which this PE begins as long as that is
// free: the others are those that other senders are using.
std::optional<Piece> message_by_bytes(const PlanInput& input, std::uint64_t bytes) {
  const Rest rest{.total = bytes, .offset = 0, .lane = {}};
  const Search locals = local_search(input, rest);
  const auto local = least_outstanding(locals);
  const auto remote = local ? least_outstanding({.side = input.remote,
                                                 .mask = allowed_remotes(input, *local),
                                                 .start = input.remote_start})
                            : std::nullopt;
  return remote ? std::optional(Piece{RailIndex(*local), RailIndex(*remote), 0, bytes, {}})
                : std::nullopt;
}

std::optional<RailIndex> awaited_by_bytes(const PlanInput& input, Rest rest) {
  const auto local = local_in_turn(input, local_search(input, rest), rest);
  return local ? std::optional(RailIndex(*local)) : std::nullopt;
}

}  // namespace weft::transport::rails
