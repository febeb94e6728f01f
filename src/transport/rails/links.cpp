#include "src/transport/rails/links.hpp"

#include <algorithm>
#include <array>

#include "src/base/log.hpp"

namespace weft::transport::rails {
namespace {

// A window holds what a rail moves in this time. Long enough that a PE which shares its core with
// others, and is late to see completions, does not let the rail run dry (30 ms: half the rate with 8
// PEs on 2 cores).
constexpr double kWindowSeconds = 0.250;
constexpr std::uint64_t kWindowBytesMin = 1U << 20U;
constexpr std::uint64_t kWindowBytesMax = 32U << 20U;
constexpr std::uint64_t kWindowBytesUnknown = 4U << 20U;
constexpr std::uint64_t kPieceBytesMax = 1U << 20U;
// A peer that has less than this part of a rail's window outstanding may use the rail also while
// the others fill the window: one whose NICs are busy must not stop the traffic to the rest.
constexpr std::uint64_t kPeerShare = 4;
constexpr std::uint64_t kProbeIntervalNs = 250'000'000;
constexpr std::uint64_t kWarnIntervalNs = 1'000'000'000;

// From now on the rails of this side are even: what one of them missed is not made up for.
void start_even(std::span<RailLoad* const> loads) {
  for (RailLoad* load : loads) {
    load->write_turn_bytes = 0;
    load->read_turn_bytes = 0;
  }
}

void renew_weights(std::span<RailLoad* const> loads) {
  double fastest = 0;
  for (const RailLoad* load : loads) {
    fastest = std::max(fastest, load->meter.bytes_per_s());
  }
  bool has_changed = false;
  for (RailLoad* load : loads) {
    if (load->weighed_samples != load->meter.samples()) {
      load->weighed_samples = load->meter.samples();
      const double before = load->weight.value();
      load->weight.update(load->meter.bytes_per_s(), fastest);
      has_changed = has_changed || load->weight.value() != before;
    }
  }
  if (has_changed) {
    start_even(loads);
  }
}

}  // namespace

std::uint64_t Links::window_of(const RailLoad& load) const {
  const double rate = load.meter.bytes_per_s();
  if (rate <= 0) {
    return kWindowBytesUnknown;
  }
  return std::clamp(static_cast<std::uint64_t>(rate * kWindowSeconds),
                    std::max(kWindowBytesMin, 2 * state_.options.stripe_bytes_min),
                    kWindowBytesMax);
}

std::optional<Piece> Links::choose(const Peer& peer,
                                   Direction direction,
                                   Rest rest,
                                   std::uint64_t counter) const {
  std::array<RailState, kRailCountMax> local;
  std::array<RailState, kRailCountMax> remote;
  const auto fill = [&](RailState& rail, const RailLoad& load) {
    rail.sent_bytes = direction == Direction::Write ? load.write_turn_bytes : load.read_turn_bytes;
    rail.outstanding_bytes = load.meter.outstanding_bytes();
    rail.window_bytes = window_of(load);
    rail.weight = load.weight.value();
  };
  std::uint64_t smallest_window = kWindowBytesMax;
  for (std::size_t i = 0; i < state_.rails.size(); ++i) {
    fill(local[i], state_.rails[i].load);
    local[i].healthy = !state_.rails[i].full;
    smallest_window = std::min(smallest_window, local[i].window_bytes);
    const std::uint64_t share = local[i].window_bytes / kPeerShare;
    if (peer.outstanding_bytes[i] < share) {
      local[i].window_bytes = std::max(
          local[i].window_bytes, local[i].outstanding_bytes + share - peer.outstanding_bytes[i]);
    }
  }
  for (std::size_t i = 0; i < peer.rails.size(); ++i) {
    fill(remote[i], peer.rails[i].load);
  }
  const PlanInput input{
      .policy = state_.options.policy,
      .me = state_.me,
      .peer = peer.pe,
      .local = {local.data(), state_.rails.size()},
      .remote = {remote.data(), peer.rails.size()},
      .links = peer.masks,
      .counter = counter,
      .stripe_bytes_min = state_.options.stripe_bytes_min,
      .piece_bytes_max = std::clamp(smallest_window / 2, state_.options.stripe_bytes_min,
                                    std::max(kPieceBytesMax, state_.options.stripe_bytes_min))};
  return next_piece(input, rest);
}

bool Links::is_reachable(const Peer& peer) const {
  return std::ranges::any_of(peer.masks, [](LinkMask mask) { return mask != 0; });
}

void Links::on_posted(
    Peer& peer, RailLink& link, Direction direction, std::uint64_t bytes, Posted& posted) {
  posted.peer = peer.pe.value;
  posted.link = static_cast<std::uint32_t>(&link - peer.links.data());
  posted.bytes = bytes;
  LocalRail& local = state_.rails[link.local.value];
  for (RailLoad* load : {&local.load, &peer.rails[link.remote.value].load}) {
    load->meter.on_post(state_.now_ns, bytes);
    (direction == Direction::Write ? load->write_turn_bytes : load->read_turn_bytes) += bytes;
  }
  peer.outstanding_bytes[link.local.value] += bytes;
  if (link.posts.empty()) {
    link.progress_ns = state_.now_ns;
  }
  posted.slot = static_cast<std::uint32_t>(link.posts.size());
  posted.abandoned = false;
  link.posts.push_back(&posted);
  ++local.outstanding;
  ++state_.outstanding;
  const bool is_write = direction == Direction::Write;
  PeerRailCounters& theirs = *peer.rails[link.remote.value].counters;
  add_to(is_write ? theirs.put_bytes : theirs.get_bytes, bytes);
  add_to(local.counters->tx_operations, 1);
  add_to(is_write ? local.counters->tx_bytes : local.counters->rx_bytes, bytes);
  set_counter(local.counters->outstanding_bytes, local.load.meter.outstanding_bytes());
}

void Links::take_back(Peer& peer, const Posted& posted, bool completed) {
  RailLink& link = peer.links[posted.link];
  LocalRail& local = state_.rails[link.local.value];
  for (RailLoad* load : {&local.load, &peer.rails[link.remote.value].load}) {
    if (completed) {
      load->meter.on_complete(state_.now_ns, posted.bytes);
    } else {
      load->meter.on_failure(posted.bytes);
    }
  }
  peer.outstanding_bytes[link.local.value] -= posted.bytes;
  link.progress_ns = state_.now_ns;
  link.posts[posted.slot] = link.posts.back();
  link.posts[posted.slot]->slot = posted.slot;
  link.posts.pop_back();
  --local.outstanding;
  --state_.outstanding;
  local.full = false;
  set_counter(local.counters->outstanding_bytes, local.load.meter.outstanding_bytes());
}

void Links::on_completed(Peer& peer, const Posted& posted) {
  take_back(peer, posted, true);
  if (RailLink& link = peer.links[posted.link]; !link.warm) {
    become_warm(peer, link);
  }
}

void Links::on_failed(Peer& peer, const Posted& posted) {
  take_back(peer, posted, false);
  if (posted.kind != PostedKind::Probe) {  // a probe of a dead link does what it is for
    add_to(state_.rails[peer.links[posted.link].local.value].counters->errors, 1);
  }
}

void Links::on_full(LocalRail& local) {
  local.full = true;
  add_to(local.counters->retries, 1);
}

void Links::on_refused(Peer& peer, RailLink& link) {
  const LocalRail& local = state_.rails[link.local.value];
  add_to(local.counters->errors, 1);
  set_down(peer, link, fabric::error_words(local.rail->last_error()));
}

void Links::count_in(const CounterBlocks& blocks) {
  for (std::size_t i = 0; i < state_.rails.size(); ++i) {
    state_.rails[i].counters = &blocks.rails[i];
  }
  for (const auto& peer : state_.peers) {
    if (peer == nullptr) {
      continue;
    }
    const auto theirs = blocks.peers.subspan(std::size_t{peer->pe.value} * blocks.peer_rail_stride);
    for (std::size_t i = 0; i < peer->rails.size(); ++i) {
      peer->rails[i].counters = &theirs[i];
    }
    for (const RailLink& link : peer->links) {
      const bool is_wanted =
          is_first_choice(state_.options.policy, link.pair(), peer->rails.size());
      state_.rails[link.local.value].links_cold += is_wanted ? 1 : 0;
      change_links_up(*peer, link, 1);
    }
  }
}

void Links::change_links_up(const Peer& peer, const RailLink& link, std::int32_t change) {
  LocalRail& local = state_.rails[link.local.value];
  if (may_use(state_.options.policy, link.pair(), peer.rails.size())) {
    local.links_up += static_cast<std::uint32_t>(change);
    set_counter(local.counters->up, local.links_up > 0 ? 1U : 0U);
  }
}

void Links::become_warm(const Peer& peer, RailLink& link) {
  link.warm = true;
  LocalRail& local = state_.rails[link.local.value];
  if (is_first_choice(state_.options.policy, link.pair(), peer.rails.size())) {
    --local.links_cold;
    set_counter(local.counters->warm, local.links_cold == 0 ? 1U : 0U);
  }
}

void Links::set_up(Peer& peer, RailLink& link) {
  if (!link.up) {
    log::info("rail {} ({}) reaches rail {} of PE {} again", link.local.value,
              state_.rails[link.local.value].rail->nic(), link.remote.value, peer.pe.value);
  }
  if (!link.up) {
    start_even(local_loads());
    start_even(loads_of(peer));
    change_links_up(peer, link, 1);
  }
  link.up = true;
  peer.masks[link.local.value] |= LinkMask{1} << link.remote.value;
  peer.unreachable_since_ns = 0;
}

void Links::set_down(Peer& peer, RailLink& link, const std::string& reason) {
  link.probe_at_ns = state_.now_ns + kProbeIntervalNs;
  if (!link.up) {
    return;
  }
  link.up = false;
  change_links_up(peer, link, -1);
  link.down_ns = state_.now_ns;
  peer.masks[link.local.value] &= ~(LinkMask{1} << link.remote.value);
  if (!is_reachable(peer)) {
    peer.unreachable_since_ns = state_.now_ns;
  }
  // A cable takes many links with it: one warning, the others for those who look closer.
  const bool is_news = state_.now_ns - state_.warned_ns > kWarnIntervalNs || !is_reachable(peer);
  state_.warned_ns = is_news ? state_.now_ns : state_.warned_ns;
  const fabric::Rail& rail = *state_.rails[link.local.value].rail;
  log::at(is_news ? log::Level::Warn : log::Level::Info,
          "rail {} ({}, {}) does not reach rail {} of PE {}: {}; {}", link.local.value, rail.nic(),
          rail.address_text(), link.remote.value, peer.pe.value, reason,
          is_reachable(peer) ? "going on with the others" : "no other rail is left, trying again");
}

std::span<RailLoad* const> Links::local_loads() {
  for (std::size_t i = 0; i < state_.rails.size(); ++i) {
    loads_[i] = &state_.rails[i].load;
  }
  return {loads_.data(), state_.rails.size()};
}

std::span<RailLoad* const> Links::loads_of(Peer& peer) {
  for (std::size_t i = 0; i < peer.rails.size(); ++i) {
    loads_[i] = &peer.rails[i].load;
  }
  return {loads_.data(), peer.rails.size()};
}

void Links::update_weights() {
  renew_weights(local_loads());
  for (const auto& peer : state_.peers) {
    if (peer != nullptr) {
      renew_weights(loads_of(*peer));
    }
  }
}

}  // namespace weft::transport::rails
