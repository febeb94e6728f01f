// The chooser of the policies that balance by bytes. docs/decisions/0002-balanced-policy.md lists
// what was tried.
#include <algorithm>
#include <cmath>
#include <limits>

#include "src/transport/rails/allowed_rails.hpp"
#include "src/transport/rails/choosers.hpp"

namespace weft::transport::rails {
namespace {

// How far ahead of the peer's least loaded rail the rail paired with one of ours may be, within a
// burst. On the slowest NICs of the lab, 256 KiB or 1 MiB gave 0.70 of the rails' rate instead of
// 0.94: flows changed rails at different times.
constexpr double kLeadBytesMax = 4.0 * 1024 * 1024;
// Loads are compared in units of this: a few signals do not change whose turn it is.
constexpr std::uint64_t kGrainBytes = 4096;
// Operations are cut at multiples of this, and rails that differ by less are equally far behind.
constexpr std::uint64_t kUnitBytes = 64;
// A number of parts this close to an integer is rounded to it.
constexpr double kFitSlack = 0.125;
// With at least this many operations for each rail, the load evens out although the two sides have
// different numbers of rails. Whole operations then keep fewer connections busy at once (all-to-all
// of 64 KiB, 8 operations for each rail, 4 NICs against 3: 0.58 of the rails' rate instead of
// 0.49).
constexpr double kManyOperations = 4;
// A rail with less than 1 / kStarvingDivisor of its window outstanding is about to become idle.
constexpr std::uint64_t kStarvingDivisor = 4;

// The rail's load with `bytes` more: the bytes of this burst divided by its weight. Proportional to
// when it would finish.
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

// The rail that would finish first. A tie goes to the first one from `start` on.
template <typename IsCandidate>
std::optional<std::uint32_t> first_done(const Search& search, IsCandidate is_candidate) {
  std::optional<std::uint32_t> best;
  double least = 0;
  for (std::uint32_t k = 0; k < count_of(search.side); ++k) {
    const std::uint32_t i = (search.start + k) % count_of(search.side);
    const double load = load_with(search.side[i], search.bytes);
    if (((search.mask >> i) & 1U) != 0 && is_candidate(i) && (!best || load < least)) {
      best = i;
      least = load;
    }
  }
  return best;
}

std::optional<std::uint32_t> first_done(const Search& search) {
  return first_done(search, [](std::uint32_t) { return true; });
}

// The rail with the fewest outstanding bytes. A tie goes to the first one from `start` on.
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

// The peer's rails that are not paired with any of our rails, or only with `local`.
LinkMask without_paired(const PlanInput& input, std::uint32_t local, LinkMask remotes) {
  for (std::uint32_t other = 0; other < input.pairing.size(); ++other) {
    if (other != local && input.pairing[other] != kUnpaired) {
      remotes &= ~(LinkMask{1} << input.pairing[other]);
    }
  }
  return remotes;
}

// The rail with which `local` is paired in this burst. If it is not paired yet and one of our rails
// is slow, the pairing of the last burst is kept: the slow rail may be ours or the peer's, and in
// both cases the same rail of ours carries less.
std::uint32_t usual_remote(const PlanInput& input, std::uint32_t local) {
  const std::uint32_t now = input.pairing.empty() ? kUnpaired : input.pairing[local];
  const bool lasts = now == kUnpaired && input.keeps_pairs && !input.last_pairing.empty() &&
                     has_slow_rail(input.local);
  const std::uint32_t usual = lasts ? input.last_pairing[local] : now;
  return lasts && std::ranges::find(input.pairing, usual) != input.pairing.end() ? kUnpaired
                                                                                 : usual;
}

// The rail with which `local` is paired, unless its load is too far ahead of the others. Pairs keep
// few connections busy at once, and senders to one peer do not collide on its rails. Otherwise the
// rail that would finish first, preferably one that no other rail of ours is paired with.
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
  // If one of our rails is slow, the rail paired with it carries less too. The others must not move
  // there.
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

// Of all bytes that go over this side.
double share_by_weight(std::span<const RailState> side, std::uint32_t i) {
  double weights = 0;
  for (const RailState& rail : side) {
    weights += rail.healthy ? rail.weight : 0.0;
  }
  return side[i].weight / weights;
}

// The bytes that local rail `local` carries in this burst if the whole burst, including what is
// still expected, is divided by weight.
double share_in_burst(const PlanInput& input, std::uint32_t local, Rest rest) {
  double sent = 0;
  for (const RailState& rail : input.local) {
    sent += rail.healthy ? static_cast<double>(rail.sent_bytes) : 0.0;
  }
  const auto left = static_cast<double>(std::max(input.expected_bytes, rest.total - rest.offset));
  return (sent + left) * share_by_weight(input.local, local);
}

// The part of that share that is not posted yet.
double room_in_burst(const PlanInput& input, std::uint32_t local, Rest rest) {
  const RailState& rail = input.local[local];
  return share_in_burst(input, local, rest) -
         static_cast<double>(rail.sent_bytes + rail.awaited_bytes);
}

// The number of equal parts into which the operation is split, one for each of as many rails. 0: it
// is striped over all rails, by weight.
//
// 1 while the rail's share of the burst has room for all of the rest. If the burst has less than
// one such operation for each rail, the number that fills the shares exactly, if there is one.
// Otherwise the operation is what remains after all rails have carried the same, and it is striped:
// operations that are split unevenly load the targets unevenly. If sizes differ, every operation is
// striped, since nobody can predict which later operations would even out the load (Pareto sizes up
// to 1 MiB, all-to-all of 8 PEs with 4 NICs each: 0.67 of the rails' rate instead of 0.19). The
// same if the peer has another number of rails and there are fewer than kManyOperations for each
// rail.
double parts_of(const PlanInput& input, std::uint32_t local, Rest rest) {
  if (rest.offset > 0 && rest.span.is_striped) {
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

// The bytes that rail `i` is behind its share by weight, if the rest goes over this side as well.
double bytes_behind(std::span<const RailState> side, std::uint32_t i, std::uint64_t rest) {
  double sum = static_cast<double>(rest);
  for (const RailState& rail : side) {
    sum += rail.healthy ? static_cast<double>(rail.sent_bytes + rail.awaited_bytes) : 0.0;
  }
  return sum * share_by_weight(side, i) -
         static_cast<double>(side[i].sent_bytes + side[i].awaited_bytes);
}

// The rail that is furthest behind its share. A tie goes to the first one from `start` on.
std::optional<std::uint32_t> furthest_behind(const Search& search, std::uint64_t rest) {
  std::optional<std::uint32_t> best;
  double most = 0;
  for (std::uint32_t k = 0; k < count_of(search.side); ++k) {
    const std::uint32_t i = (search.start + k) % count_of(search.side);
    const double behind = bytes_behind(search.side, i, rest);
    if (((search.mask >> i) & 1U) != 0 &&
        (!best || behind > most + static_cast<double>(kUnitBytes))) {
      best = i;
      most = behind;
    }
  }
  return best;
}

// Each operation to a peer with a slow rail is divided by the weights of both sides at once.
bool divides_by_both(const PlanInput& input, Rest rest) {
  return !input.keeps_pairs && has_slow_rail(input.remote) &&
         rest.total >= count_of(input.local) * input.stripe_bytes_min;
}

// The bytes of the part that goes over this pair of rails, if the operation is striped.
double striped_bytes(const PlanInput& input, RailPair pair, Rest rest) {
  const std::uint32_t local = pair.local.value;
  const auto total = static_cast<double>(rest.total);
  if (divides_by_both(input, rest)) {
    const double ours = bytes_behind(input.local, local, rest.total - rest.offset);
    const double theirs = bytes_behind(input.remote, pair.remote.value, rest.total - rest.offset);
    return std::max(ours + static_cast<double>(input.stripe_bytes_min) / 2 < theirs ? ours : theirs,
                    1.0);
  }
  const double room = room_in_burst(input, local, rest);
  const bool fills = room > 0 && has_slow_rail(input.local);
  return fills ? std::min(room, total) : total * share_by_weight(input.local, local);
}

// The part of the operation that goes over this pair of rails.
RailSpan open_span(const PlanInput& input, RailPair pair, Rest rest) {
  const double parts = parts_of(input, pair.local.value, rest);
  const double wanted =
      parts == 0 ? striped_bytes(input, pair, rest) : static_cast<double>(rest.total) / parts;
  const std::uint64_t bytes =
      (static_cast<std::uint64_t>(wanted) + kUnitBytes - 1) / kUnitBytes * kUnitBytes;
  return {.local = pair.local,
          .remote = pair.remote,
          .end = rest.offset + std::max(bytes, input.stripe_bytes_min),
          .is_striped = parts == 0};
}

bool is_in_lane(const PlanInput& input, Rest rest) {
  return rest.offset > 0 && rest.offset < rest.span.end &&
         ((allowed_remotes(input, rest.span.local.value) >> rest.span.remote.value) & 1U) != 0;
}

Piece piece_of(const PlanInput& input, Rest rest, RailSpan span) {
  const std::uint64_t left = rest.total - rest.offset;
  std::uint64_t bytes =
      std::min(span.end - rest.offset, std::max(input.piece_bytes_max, input.stripe_bytes_min));
  if (bytes + input.stripe_bytes_min / 2 >= left) {
    bytes = left;  // the rest is too small for a post of its own
  }
  return {span.local, span.remote, rest.offset, bytes, span};
}

// A small operation: one piece, which ignores the windows.
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
  return {
      .side = input.local,
      .mask = mask,
      // If our rail determines the peer's, senders must begin with different rails of their own.
      .start = input.policy->names_remote ? input.remote_start : input.local_start,
      .bytes = std::min(rest.total - rest.offset, input.piece_bytes_max)};
}

std::optional<std::uint32_t> local_in_turn(const PlanInput& input,
                                           const Search& locals,
                                           Rest rest) {
  if (is_in_lane(input, rest)) {
    return rest.span.local.value;
  }
  return divides_by_both(input, rest) ? furthest_behind(locals, rest.total - rest.offset)
                                      : first_done(locals);
}

// Where both sides are divided by weight: the peer's rail that is furthest behind its share. If our
// side has a slow rail too, the switch of these NICs is probably what is slow. Then the rail with
// the index of ours is preferred: rails that keep one partner do not compete with others for theirs
// (simulated by tools/sim, NIC 0 of all PEs at half its rate, all-to-all of 256 KiB with
// 4 steps, 4 hosts x 2 PEs: 0.99 of the rails' rate, 0.94 without it).
std::optional<std::uint32_t> remote_behind(const PlanInput& input, std::uint32_t local, Rest rest) {
  const Search remotes{
      .side = input.remote, .mask = allowed_remotes(input, local), .start = input.remote_start};
  const std::uint64_t left = rest.total - rest.offset;
  const auto furthest = furthest_behind(remotes, left);
  if (!furthest || !input.is_even || !has_slow_rail(input.local) ||
      ((remotes.mask >> local) & 1U) == 0) {
    return furthest;
  }
  const double ahead =
      bytes_behind(input.remote, *furthest, left) - bytes_behind(input.remote, local, left);
  return ahead <= static_cast<double>(input.stripe_bytes_min) / 2 ? std::optional(local) : furthest;
}

std::optional<std::uint32_t> remote_for(const PlanInput& input,
                                        std::uint32_t local,
                                        const Search& locals,
                                        Rest rest) {
  return divides_by_both(input, rest) ? remote_behind(input, local, rest)
                                      : remote_in_turn(input, local, locals.bytes);
}

// Whether a rail may take a piece of an operation while the rail in turn has no room. One that is
// about to become idle may, so that a slow rail does not block the others; but not one that this
// burst has not used yet, as operations to other peers are still to come for it (one of 32 MiB to
// each of 4 peers: 0.84 of the rails' rate instead of 1.00). A striped operation takes every rail
// that still has room in its share.
bool may_help(const PlanInput& input, std::uint32_t local, Rest rest) {
  const RailState& rail = input.local[local];
  const std::uint64_t bytes = std::min(rest.total - rest.offset, input.piece_bytes_max);
  const bool is_for_others = rail.sent_bytes == 0 && input.has_other_peers &&
                             input.expected_bytes > rest.total - rest.offset;
  const bool is_in_share = has_room(rail, bytes) && parts_of(input, local, rest) == 0 &&
                           room_in_burst(input, local, rest) >= static_cast<double>(bytes);
  return is_in_share || (is_starving(rail) && !is_for_others);
}

}  // namespace

// If the window of the rail in turn is full, the operation waits for that rail, although others may
// have room (but see may_help). Otherwise random delays in the network would unbalance the rails.
std::optional<Piece> next_by_bytes(const PlanInput& input, Rest rest) {
  const Search locals = local_search(input, rest);
  if (rest.total < input.stripe_bytes_min) {
    return next_small(input, locals, rest);
  }
  auto local = local_in_turn(input, locals, rest);
  if (local && !has_room(input.local[*local], locals.bytes)) {
    local = first_done(locals, [&](std::uint32_t i) { return may_help(input, i, rest); });
  } else if (local && is_in_lane(input, rest)) {
    return piece_of(input, rest, rest.span);
  }
  const auto remote = local ? remote_for(input, *local, locals, rest) : std::nullopt;
  return remote ? std::optional(piece_of(
                      input, rest, open_span(input, {RailIndex(*local), RailIndex(*remote)}, rest)))
                : std::nullopt;
}

// The rails with the fewest outstanding bytes of ours. While nothing is outstanding, that is the
// peer's rail with which this PE begins; other senders are using the other rails.
std::optional<Piece> message_by_bytes(const PlanInput& input, std::uint64_t bytes) {
  const Rest rest{.total = bytes, .offset = 0, .span = {}};
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
