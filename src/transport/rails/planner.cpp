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

// How much longer a rail's queue may be than the shortest before it is passed over, in pieces.
constexpr double kSlackPieces = 2.0;
constexpr double kSlackBytesMin = 128.0 * 1024.0;

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
  const std::uint32_t same_index = local % count_of(input.remote);
  for (std::uint32_t remote = 0; remote < count_of(input.remote); ++remote) {
    const bool wanted = input.policy != Policy::Aligned || remote == same_index;
    if (wanted && is_linked(input, local, remote)) {
      mask |= LinkMask{1} << remote;
    }
  }
  return mask;
}

double queue_length(const RailState& rail) {
  return static_cast<double>(rail.outstanding_bytes) / rail.weight;
}

bool has_room(const RailState& rail, std::uint64_t bytes) {
  return rail.outstanding_bytes == 0 || rail.outstanding_bytes + bytes <= rail.window_bytes;
}

// Among the rails in `mask`: those whose queue is not much longer than the shortest, and of these
// the one with the fewest bytes for its weight. Ties go to the first from `start` on.
std::optional<std::uint32_t> fewest_bytes(std::span<const RailState> side,
                                          LinkMask mask,
                                          std::uint64_t bytes,
                                          std::uint32_t start) {
  double shortest = std::numeric_limits<double>::max();
  for (std::uint32_t i = 0; i < count_of(side); ++i) {
    if (((mask >> i) & 1U) != 0) {
      shortest = std::min(shortest, queue_length(side[i]));
    }
  }
  const double longest_allowed =
      shortest + std::max(kSlackBytesMin, kSlackPieces * static_cast<double>(bytes));
  std::optional<std::uint32_t> best;
  double best_load = 0;
  for (std::uint32_t k = 0; k < count_of(side); ++k) {
    const std::uint32_t i = (start + k) % count_of(side);
    if (((mask >> i) & 1U) == 0 || queue_length(side[i]) > longest_allowed) {
      continue;
    }
    const double load = static_cast<double>(side[i].sent_bytes) / side[i].weight;
    if (!best || load < best_load) {
      best = i;
      best_load = load;
    }
  }
  return best;
}

// The peer's rail that got the fewest bytes; but while the sums are close, the one that this local
// rail used before. So two PEs keep as many connections busy as they have rails, not the square of
// it: many short flows that meet on a NIC overrun its queue (measured: a third of the rate over TCP).
std::optional<std::uint32_t> choose_remote(const PlanInput& input,
                                           std::uint32_t local,
                                           LinkMask remotes,
                                           std::uint64_t bytes) {
  const std::uint32_t usual = (local + input.me.value + input.peer.value) % count_of(input.remote);
  const auto fewest = fewest_bytes(input.remote, remotes, bytes, usual);
  if (!fewest || ((remotes >> usual) & 1U) == 0) {
    return fewest;
  }
  const RailState& candidate = input.remote[usual];
  const RailState& least = input.remote[*fewest];
  const double lead = static_cast<double>(candidate.sent_bytes) / candidate.weight -
                      static_cast<double>(least.sent_bytes) / least.weight;
  const double longer = queue_length(candidate) - queue_length(least);
  const double slack = std::max(kSlackBytesMin, kSlackPieces * static_cast<double>(bytes));
  return lead <= kSlackBytesMin && longer <= slack ? usual : *fewest;
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

LinkMask locals_with_room(const PlanInput& input, Rest rest) {
  LinkMask mask = 0;
  const bool is_small = rest.total < input.stripe_bytes_min;
  for (std::uint32_t local = 0; local < count_of(input.local); ++local) {
    const bool usable = allowed_remotes(input, local) != 0;
    if (usable && (is_small || has_room(input.local[local], share_of(input, local, rest)))) {
      mask |= LinkMask{1} << local;
    }
  }
  return mask;
}

std::optional<Piece> next_by_bytes(const PlanInput& input, Rest rest) {
  const std::uint64_t expected = std::min(rest.total - rest.offset, input.piece_bytes_max);
  LinkMask locals = locals_with_room(input, rest);
  while (locals != 0) {
    const auto local =
        fewest_bytes(input.local, locals, expected, input.me.value % count_of(input.local));
    if (!local) {
      return std::nullopt;
    }
    const std::uint64_t bytes = share_of(input, *local, rest);
    LinkMask remotes = allowed_remotes(input, *local);
    for (std::uint32_t remote = 0; remote < count_of(input.remote); ++remote) {
      if (rest.total >= input.stripe_bytes_min && !has_room(input.remote[remote], bytes)) {
        remotes &= ~(LinkMask{1} << remote);
      }
    }
    if (const auto remote = choose_remote(input, *local, remotes, bytes)) {
      return Piece{RailIndex(*local), RailIndex(*remote), rest.offset, bytes};
    }
    locals &= ~(LinkMask{1} << *local);
  }
  return std::nullopt;
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
