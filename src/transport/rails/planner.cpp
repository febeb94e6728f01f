#include "src/transport/rails/planner.hpp"

#include <algorithm>
#include <limits>
#include <utility>

#include "src/base/error.hpp"

namespace weft::transport::rails {
namespace {

constexpr std::array<std::pair<Policy, std::string_view>, 5> kNames{{
    {Policy::Single, "single"},
    {Policy::Coupled, "coupled"},
    {Policy::Offset, "offset"},
    {Policy::Balanced, "balanced"},
    {Policy::Aligned, "aligned"},
}};

// How far the peer's rail that a local rail is used to may be ahead of the others.
constexpr double kLeadBytesMax = 32.0 * 1024.0;
// A rail with less than this share of its window on the way is about to run dry.
constexpr std::uint64_t kStarvingDivisor = 4;

bool counts_bytes(Policy policy) {
  return policy == Policy::Balanced || policy == Policy::Aligned;
}

std::uint32_t count_of(std::span<const RailState> side) {
  return static_cast<std::uint32_t>(side.size());
}

bool is_linked(const PlanInput& input, std::uint32_t local, std::uint32_t remote) {
  return input.local[local].healthy && input.remote[remote].healthy &&
         ((input.links[local] >> remote) & 1U) != 0;
}

// The peer's rails that local rail `local` may use under the policy, as a mask.
LinkMask allowed_remotes(const PlanInput& input, std::uint32_t local) {
  LinkMask mask = 0;
  for (std::uint32_t remote = 0; remote < count_of(input.remote); ++remote) {
    const RailPair pair{RailIndex(local), RailIndex(remote)};
    if (may_use(input.policy, pair, input.remote.size()) && is_linked(input, local, remote)) {
      mask |= LinkMask{1} << remote;
    }
  }
  return mask;
}

double load_of(const RailState& rail) {
  return static_cast<double>(rail.sent_bytes) / rail.weight;
}

bool has_room(const RailState& rail, std::uint64_t bytes) {
  return rail.outstanding_bytes == 0 || rail.outstanding_bytes + bytes <= rail.window_bytes;
}

bool is_starving(const RailState& rail) {
  return rail.outstanding_bytes < rail.window_bytes / kStarvingDivisor;
}

// The rail in `mask` with the fewest bytes for its weight; ties go to the first from `start` on.
template <typename IsCandidate>
std::optional<std::uint32_t> fewest_bytes(std::span<const RailState> side,
                                          LinkMask mask,
                                          std::uint32_t start,
                                          IsCandidate is_candidate) {
  std::optional<std::uint32_t> best;
  for (std::uint32_t k = 0; k < count_of(side); ++k) {
    const std::uint32_t i = (start + k) % count_of(side);
    if (((mask >> i) & 1U) != 0 && is_candidate(side[i]) &&
        (!best || load_of(side[i]) < load_of(side[*best]))) {
      best = i;
    }
  }
  return best;
}

// Whose turn it is: the rail with the fewest bytes. If its queue is full, everybody waits for it, so
// that luck in the network does not become imbalance; except that no rail may run dry meanwhile, so
// that a slow rail does not hold up the others. `is_small`: windows do not matter.
std::optional<std::uint32_t> rail_in_turn(std::span<const RailState> side,
                                          LinkMask mask,
                                          std::uint32_t start,
                                          std::uint64_t bytes,
                                          bool is_small) {
  const auto first = fewest_bytes(side, mask, start, [](const RailState&) { return true; });
  if (!first || is_small || has_room(side[*first], bytes)) {
    return first;
  }
  return fewest_bytes(side, mask, start, is_starving);
}

// The peer's rail in turn; but while the sums are close, the one that this local rail used before. So
// two PEs keep as many connections busy as they have rails, not the square of it: many short flows
// that meet on a NIC overrun its queue.
std::optional<std::uint32_t> choose_remote(const PlanInput& input,
                                           std::uint32_t local,
                                           std::uint64_t bytes,
                                           bool is_small) {
  const LinkMask remotes = allowed_remotes(input, local);
  const std::uint32_t usual = (local + input.me.value + input.peer.value) % count_of(input.remote);
  const auto fewest =
      fewest_bytes(input.remote, remotes, usual, [](const RailState&) { return true; });
  if (!fewest) {
    return std::nullopt;
  }
  const bool usual_is_up = ((remotes >> usual) & 1U) != 0;
  const double lead = load_of(input.remote[usual]) - load_of(input.remote[*fewest]);
  if (usual_is_up && lead <= kLeadBytesMax && (is_small || has_room(input.remote[usual], bytes))) {
    return usual;
  }
  return rail_in_turn(input.remote, remotes, usual, bytes, is_small);
}

// This rail's share of the operation by weight, so that all rails finish their shares together.
std::uint64_t share_of(const PlanInput& input, std::uint32_t local, Rest rest) {
  const std::uint64_t left = rest.total - rest.offset;
  double weights = 0;
  for (const RailState& rail : input.local) {
    weights += rail.healthy ? rail.weight : 0.0;
  }
  const double share = static_cast<double>(rest.total) * input.local[local].weight / weights;
  std::uint64_t bytes = static_cast<std::uint64_t>(share) + 63U;
  bytes = std::clamp(bytes & ~std::uint64_t{63}, input.stripe_bytes_min,
                     std::max(input.piece_bytes_max, input.stripe_bytes_min));
  // A rest too small to be worth an operation of its own goes with this piece.
  return bytes + input.stripe_bytes_min / 2 >= left ? left : bytes;
}

std::optional<Piece> next_by_bytes(const PlanInput& input, Rest rest) {
  LinkMask locals = 0;
  for (std::uint32_t local = 0; local < count_of(input.local); ++local) {
    locals |= allowed_remotes(input, local) != 0 ? LinkMask{1} << local : 0;
  }
  const bool is_small = rest.total < input.stripe_bytes_min;
  const std::uint64_t expected = std::min(rest.total - rest.offset, input.piece_bytes_max);
  const auto local =
      rail_in_turn(input.local, locals, input.me.value % count_of(input.local), expected, is_small);
  if (!local) {
    return std::nullopt;
  }
  const std::uint64_t bytes = share_of(input, *local, rest);
  const auto remote = choose_remote(input, *local, bytes, is_small);
  return remote ? std::optional(Piece{RailIndex(*local), RailIndex(*remote), rest.offset, bytes})
                : std::nullopt;
}

// The link that a policy without byte counts names for operation `counter`.
std::pair<std::uint32_t, std::uint32_t> named_link(const PlanInput& input, std::uint64_t counter) {
  const auto locals = static_cast<std::uint64_t>(input.local.size());
  const auto remotes = static_cast<std::uint64_t>(input.remote.size());
  if (input.policy == Policy::Single) {
    return {0, 0};
  }
  const auto local = static_cast<std::uint32_t>(counter % locals);
  const std::uint64_t remote = input.policy == Policy::Coupled
                                   ? local % remotes
                                   : (input.me.value + input.peer.value + counter) % remotes;
  return {local, static_cast<std::uint32_t>(remote)};
}

// The whole operation on the named link; if that is down, on the next one that is up.
std::optional<Piece> next_by_count(const PlanInput& input, Rest rest) {
  for (std::uint32_t local = 0; local < count_of(input.local); ++local) {
    for (std::uint32_t remote = 0; remote < count_of(input.remote); ++remote) {
      auto [l, r] = named_link(input, input.counter);
      l = (l + local) % count_of(input.local);
      r = (r + remote) % count_of(input.remote);
      if (!is_linked(input, l, r)) {
        continue;
      }
      const std::uint64_t bytes = rest.total - rest.offset;
      if (bytes >= input.stripe_bytes_min && !has_room(input.local[l], bytes)) {
        return std::nullopt;
      }
      return Piece{RailIndex(l), RailIndex(r), rest.offset, bytes};
    }
  }
  return std::nullopt;
}

}  // namespace

Policy parse_policy(std::string_view name) {
  const auto* const found =
      std::ranges::find(kNames, name, [](const auto& entry) { return entry.second; });
  if (found == kNames.end()) {
    fail(Status::InvalidArgument,
         "there is no rail policy '{}'; use single, coupled, offset, balanced or aligned", name);
  }
  return found->first;
}

std::string_view to_string(Policy policy) {
  return kNames[static_cast<std::size_t>(policy)].second;
}

bool may_use(Policy policy, RailPair pair, std::size_t remote_count) {
  return policy != Policy::Aligned || pair.local.value % remote_count == pair.remote.value;
}

bool is_first_choice(Policy policy, RailPair pair, std::size_t remote_count) {
  switch (policy) {
    case Policy::Single:
      return pair.local.value == 0 && pair.remote.value == 0;
    case Policy::Coupled:
    case Policy::Aligned:
      return pair.local.value % remote_count == pair.remote.value;
    case Policy::Offset:
    case Policy::Balanced:
      return true;
  }
  return true;
}

std::optional<Piece> next_piece(const PlanInput& input, Rest rest) {
  if (input.local.empty() || input.remote.empty()) {
    return std::nullopt;
  }
  return counts_bytes(input.policy) ? next_by_bytes(input, rest) : next_by_count(input, rest);
}

bool is_reachable(const PlanInput& input) {
  for (std::uint32_t local = 0; local < count_of(input.local); ++local) {
    if (allowed_remotes(input, local) != 0) {
      return true;
    }
  }
  return false;
}

std::vector<Piece> plan(const PlanInput& input, std::uint64_t total) {
  std::vector<RailState> local(input.local.begin(), input.local.end());
  std::vector<RailState> remote(input.remote.begin(), input.remote.end());
  for (RailState& rail : local) {
    rail.window_bytes = std::numeric_limits<std::uint64_t>::max() / 2;
  }
  for (RailState& rail : remote) {
    rail.window_bytes = std::numeric_limits<std::uint64_t>::max() / 2;
  }
  PlanInput simulated = input;
  simulated.local = local;
  simulated.remote = remote;
  std::vector<Piece> pieces;
  Rest rest{.total = total};
  do {
    const auto piece = next_piece(simulated, rest);
    if (!piece) {
      break;
    }
    pieces.push_back(*piece);
    for (RailState* rail : {&local[piece->local.value], &remote[piece->remote.value]}) {
      rail->sent_bytes += piece->bytes;
      rail->outstanding_bytes += piece->bytes;
    }
    rest.offset += piece->bytes;
  } while (rest.offset < total);
  return pieces;
}

}  // namespace weft::transport::rails
