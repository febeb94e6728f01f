#include "src/transport/rails/rail_selector.hpp"

#include <algorithm>
#include <array>
#include <utility>

#include "src/transport/rails/side.hpp"

namespace weft::transport::rails {
namespace {

// A window holds what a rail transfers in this time. A PE that shares its core with others sees
// completions late, and the rail must not become idle meanwhile (30 ms gave half the rate with 8
// PEs on 2 cores).
constexpr double kWindowSeconds = 0.250;
// A full window breaks the order in which PEs send to each other: with windows of 1 MiB, 0.60 of
// the rails' rate instead of 0.94.
constexpr std::uint64_t kWindowBytesMin = 16U << 20U;
constexpr std::uint64_t kWindowBytesMax = 32U << 20U;
constexpr std::uint64_t kWindowBytesUnknown = 16U << 20U;
constexpr std::uint64_t kPieceBytesMax = 1U << 20U;
// Prevents head-of-line blocking: a peer with less than 1 / kPeerShare of a rail's window
// outstanding may use the rail even if other peers, whose NICs are busy, have filled the window.
constexpr std::uint64_t kPeerShare = 4;
// With a single peer, the rail with which bursts begin changes once it is this many bursts ahead of
// the others.
constexpr std::uint64_t kLeadBursts = 32;

}  // namespace

std::uint64_t RailSelector::window_of(const LocalRail& rail) const {
  const double rate = rail.meter.bytes_per_s();
  if (rate <= 0) {
    return kWindowBytesUnknown;
  }
  return std::clamp(static_cast<std::uint64_t>(rate * kWindowSeconds),
                    std::max(kWindowBytesMin, 2 * state_.options.stripe_bytes_min),
                    kWindowBytesMax);
}

// At the begin of a burst the bytes of the last one are forgotten. Bursts to a peer always begin
// with the same one of its rails, except with a single peer (first_of). So PEs that begin together
// use different rails, whatever they sent before. (If a burst began with the rail that has carried
// the fewest bytes, PEs would drift until they collide: half the rate.) A burst also begins with
// the same rail of ours, so that connections are reused, until that rail is far ahead of the
// others. (Another rail for each burst: 0.62 of the rails' rate instead of 0.93.)
// docs/decisions/0002.
void RailSelector::begin_burst(Peer& peer, Direction direction) {
  const std::size_t index = index_of(direction);
  Turn& ours = state_.turns[index];
  const std::uint64_t burst = state_.bursts[index].number();
  if (ours.burst == burst && peer.turns[index].burst == burst) {
    return;
  }
  if (ours.burst != burst) {
    rates_.end_burst(direction);
  }
  const auto loads = local_loads();
  if (begin_turn(ours, loads, direction, burst)) {
    const std::uint32_t fewest = fewest_turn_bytes(loads, direction);
    const double lead =
        turn_load(*loads[ours.start], direction) - turn_load(*loads[fewest], direction);
    const std::uint64_t usual = state_.bursts[index].usual_bytes();
    const std::uint64_t window = window_of(state_.rails[ours.start]);
    const bool is_lone = ours.last_peer_count == 1 && usual > 0;
    const std::uint64_t lead_max = is_lone ? std::min(window, kLeadBursts * usual) : window;
    if (lead > static_cast<double>(lead_max)) {
      ours.start = fewest;
    }
  }
  if (begin_turn(peer.turns[index], loads_of(peer), direction, burst)) {
    ++ours.peer_count;
    peer.burst_rails[index] = 0;
    std::swap(peer.pairings[index], peer.last_pairings[index]);
    peer.pairings[index].assign(state_.rails.size(), kUnpaired);
  }
}

// Whether each rail of ours stays paired with one rail of the peer during a burst. With several
// peers all senders must do so, since each uses what the others leave free. So it needs operations
// of one size, senders that cover the peer's rails evenly, and no slow rail that is known in the
// job. With a single peer it is always right, as it does not matter which rail of a pair is the
// slow one. Both sides need the same number of rails.
bool RailSelector::may_keep_pairs(const Peer& peer, Direction direction) const {
  const bool is_even =
      peer.is_covered && state_.bursts[index_of(direction)].is_regular() && state_.is_job_even;
  return peer.rails.size() == state_.rails.size() &&
         (state_.turns[index_of(direction)].last_peer_count <= 1 || is_even);
}

// With a single peer, its first rail changes with ours. Then bursts too short to use all rails do
// not always use a slow one.
std::uint32_t RailSelector::first_of(const Peer& peer, Direction direction) const {
  const Turn& ours = state_.turns[index_of(direction)];
  return peer.turns[index_of(direction)].start + (ours.last_peer_count <= 1 ? ours.start : 0);
}

// True if all operations have one size and the peer has no slow rail: whole operations can then
// fill rails evenly.
bool RailSelector::is_regular(Direction direction, const PlanInput& input) const {
  const auto is_slow = [](const RailState& rail) { return rail.weight < 1; };
  return state_.bursts[index_of(direction)].is_regular() &&
         std::ranges::none_of(input.remote, is_slow);
}

PlanInput RailSelector::describe(const Peer& peer, Direction direction, Sides& sides) const {
  const std::size_t index = index_of(direction);
  const auto fill = [&](RailState& rail, const RailLoad& load) {
    rail.sent_bytes = load.burst_bytes[index];
    rail.outstanding_bytes = load.outstanding_bytes;
    rail.weight = load.weight.value();
  };
  std::uint64_t smallest_window = kWindowBytesMax;
  for (std::size_t i = 0; i < state_.rails.size(); ++i) {
    RailState& local = sides.local[i];
    fill(local, state_.rails[i].load);
    local.window_bytes = window_of(state_.rails[i]);
    local.awaited_bytes = state_.rails[i].awaited_bytes[index];
    local.healthy = !state_.rails[i].full;
    smallest_window = std::min(smallest_window, local.window_bytes);
    const std::uint64_t share = local.window_bytes / kPeerShare;
    if (peer.outstanding_bytes[i] < share) {
      local.window_bytes =
          std::max(local.window_bytes, local.outstanding_bytes + share - peer.outstanding_bytes[i]);
    }
  }
  for (std::size_t i = 0; i < peer.rails.size(); ++i) {
    fill(sides.remote[i], peer.rails[i].load);
  }
  const bool keeps_pairs = may_keep_pairs(peer, direction);
  for (std::size_t i = 0; keeps_pairs && i < peer.rails.size(); ++i) {
    sides.remote[i].weight =
        1;  // if it is slow, the rail of ours that is paired with it carries less
  }
  const std::uint64_t stripe = state_.options.stripe_bytes_min;
  PlanInput input{
      .policy = state_.options.policy,
      .me = state_.me,
      .peer = peer.pe,
      .local = {sides.local.data(), state_.rails.size()},
      .remote = {sides.remote.data(), peer.rails.size()},
      .links = peer.masks,
      .stripe_bytes_min = stripe,
      .piece_bytes_max = std::clamp(smallest_window / 2, stripe, std::max(kPieceBytesMax, stripe)),
      .local_start = state_.turns[index].start,
      .remote_start = first_of(peer, direction),
      .keeps_pairs = keeps_pairs,
      .pairing = peer.pairings[index],
      .last_pairing = peer.last_pairings[index],
      .has_other_peers = state_.turns[index].last_peer_count > 1,
      .expected_bytes = state_.bursts[index].expected_bytes()};
  input.is_regular = is_regular(direction, input);
  input.is_even = peer.rails.size() == state_.rails.size();
  return input;
}

std::optional<Piece> RailSelector::choose(Peer& peer,
                                          Direction direction,
                                          Rest rest,
                                          std::uint64_t counter) {
  begin_burst(peer, direction);
  Sides sides;
  PlanInput input = describe(peer, direction, sides);
  input.counter = counter;
  if (rest.total < state_.options.stripe_bytes_min) {
    return choose_small(peer, direction, rest, input);
  }
  const auto piece = next_piece(input, rest);
  if (piece) {
    peer.pairings[index_of(direction)][piece->local.value] =
        static_cast<std::uint8_t>(piece->remote.value);
  }
  return piece;
}

// Small operations use the rails round-robin across bursts, since a burst's number of them is
// seldom a multiple of the number of rails.
std::optional<Piece> RailSelector::choose_small(Peer& peer,
                                                Direction direction,
                                                Rest rest,
                                                PlanInput& input) {
  Turn& ours = state_.turns[index_of(direction)];
  Turn& theirs = peer.turns[index_of(direction)];
  std::vector<std::uint8_t>& pairing = peer.small_pairings[index_of(direction)];
  pairing.resize(state_.rails.size(), kUnpaired);
  input.pairing = pairing;
  input.local_start += ours.small_count;
  input.remote_start += theirs.small_count;
  const auto piece = next_piece(input, rest);
  if (piece) {
    ++ours.small_count;
    ++theirs.small_count;
    if (input.keeps_pairs) {
      pairing[piece->local.value] = static_cast<std::uint8_t>(piece->remote.value);
    }
  }
  return piece;
}

// Messages do not advance the operation counter of the policies that count operations.
std::optional<Piece> RailSelector::choose_for_message(const Peer& peer, std::uint64_t bytes) const {
  Sides sides;
  PlanInput input = describe(peer, Direction::Write, sides);
  input.counter = state_.operation_count;
  return next_message(input, bytes);
}

void RailSelector::wait_for_room(Peer& peer, Direction direction, Rest rest) {
  Sides sides;
  if (const auto rail = awaited_rail(describe(peer, direction, sides), rest)) {
    state_.rails[rail->value].awaited_bytes[index_of(direction)] += rest.total - rest.offset;
  }
}

void RailSelector::look_again() {
  for (LocalRail& local : state_.rails) {
    local.awaited_bytes = {};
  }
}

void RailSelector::place(Peer& peer) const {
  const auto remotes = static_cast<std::uint32_t>(peer.rails.size());
  const FirstRemote senders{.me = state_.me,
                            .peer = peer.pe,
                            .pe_count = state_.pe_count,
                            .near_count = state_.near_count};
  for (Turn& turn : peer.turns) {
    turn.start = first_remote(senders, remotes);
  }
  peer.is_covered = covers(senders, remotes);
}

void RailSelector::on_accepted(Direction direction, std::uint64_t total) {
  const bool is_large = total >= state_.options.stripe_bytes_min;
  state_.bursts[index_of(direction)].on_accepted(
      is_large ? total : 0, {.now_ns = state_.now_ns, .caller_polls = state_.caller_polls});
}

void RailSelector::on_planned(Direction direction, std::uint64_t total, std::uint64_t bytes) {
  const bool is_large = total >= state_.options.stripe_bytes_min;
  state_.bursts[index_of(direction)].on_planned(is_large ? bytes : 0);
}

void RailSelector::on_finished(Direction direction) {
  state_.bursts[index_of(direction)].on_finished(state_.now_ns);
}

std::span<RailLoad* const> RailSelector::local_loads() {
  for (std::size_t i = 0; i < state_.rails.size(); ++i) {
    loads_[i] = &state_.rails[i].load;
  }
  return {loads_.data(), state_.rails.size()};
}

std::span<RailLoad* const> RailSelector::loads_of(Peer& peer) {
  for (std::size_t i = 0; i < peer.rails.size(); ++i) {
    loads_[i] = &peer.rails[i].load;
  }
  return {loads_.data(), peer.rails.size()};
}

}  // namespace weft::transport::rails
