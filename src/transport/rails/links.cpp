#include "src/transport/rails/links.hpp"

#include <algorithm>
#include <array>
#include <utility>

#include "src/base/log.hpp"
#include "src/transport/rails/side.hpp"

namespace weft::transport::rails {
namespace {

constexpr std::uint64_t kWarnIntervalNs = 1'000'000'000;

// A rail of ours, for the log. Without a NIC where only plans are made (weft-sim).
std::string words_of(const LocalRail& local, RailIndex index) {
  if (local.rail == nullptr) {
    return std::to_string(index.value);
  }
  return fmt::format("{} ({}, {})", index.value, local.rail->nic(), local.rail->address_text());
}

}  // namespace

bool Links::is_reachable(const Peer& peer) const {
  return std::ranges::any_of(peer.masks, [](LinkMask mask) { return mask != 0; });
}

void Links::on_posted(
    Peer& peer, RailLink& link, Direction direction, std::uint64_t bytes, Posted& posted) {
  posted.peer = peer.pe.value;
  posted.link = static_cast<std::uint32_t>(&link - peer.links.data());
  posted.bytes = bytes;
  LocalRail& local = state_.rails[link.local.value];
  local.meter.on_post(state_.now_ns, bytes);
  posted.direction = direction;
  if (posted.kind == PostedKind::Piece) {
    LinkMask& used = peer.burst_rails[index_of(direction)];
    const LinkMask bit = LinkMask{1} << link.local.value;
    local.paces[index_of(direction)].on_post(state_.now_ns, bytes, (used & bit) == 0);
    used |= bit;
  }
  for (RailLoad* load : {&local.load, &peer.rails[link.remote.value].load}) {
    load->outstanding_bytes += bytes;
    load->turn_bytes[index_of(direction)] += bytes;
    load->burst_bytes[index_of(direction)] += bytes;
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
  state_.watch(peer);
  const bool is_write = direction == Direction::Write;
  PeerRailCounters& theirs = *peer.rails[link.remote.value].counters;
  add_to(is_write ? theirs.put_bytes : theirs.get_bytes, bytes);
  add_to(local.counters->tx_operations, 1);
  add_to(is_write ? local.counters->tx_bytes : local.counters->rx_bytes, bytes);
  set_counter(local.counters->outstanding_bytes, local.load.outstanding_bytes);
}

void Links::take_back(Peer& peer, const Posted& posted, bool completed) {
  RailLink& link = peer.links[posted.link];
  LocalRail& local = state_.rails[link.local.value];
  if (completed) {
    local.meter.on_complete(state_.now_ns, posted.bytes);
  } else {
    local.meter.on_failure(posted.bytes);
  }
  for (RailLoad* load : {&local.load, &peer.rails[link.remote.value].load}) {
    load->outstanding_bytes -= posted.bytes;
  }
  peer.outstanding_bytes[link.local.value] -= posted.bytes;
  link.progress_ns = state_.now_ns;
  link.posts[posted.slot] = link.posts.back();
  link.posts[posted.slot]->slot = posted.slot;
  link.posts.pop_back();
  --local.outstanding;
  --state_.outstanding;
  local.full = false;
  set_counter(local.counters->outstanding_bytes, local.load.outstanding_bytes);
}

void Links::on_completed(Peer& peer, const Posted& posted) {
  take_back(peer, posted, true);
  if (posted.kind == PostedKind::Piece) {
    ++peer.moved;
    const RailLink& link = peer.links[posted.link];
    state_.rails[link.local.value].paces[index_of(posted.direction)].on_complete(state_.now_ns,
                                                                                 posted.bytes);
  }
  if (RailLink& link = peer.links[posted.link]; !link.warm) {
    become_warm(peer, link);
  }
}

void Links::on_failed(Peer& peer, const Posted& posted) {
  take_back(peer, posted, false);
  if (posted.kind != PostedKind::Probe) {  // the failed probe of a dead link is not an error
    add_to(state_.rails[peer.links[posted.link].local.value].counters->errors, 1);
  }
}

void Links::on_full(Peer& peer, RailLink& link) {
  LocalRail& local = state_.rails[link.local.value];
  await_opening(peer, link);
  local.full = true;
  add_to(local.counters->retries, 1);
}

void Links::await_opening(Peer& peer, RailLink& link) {
  if (!link.warm && !link.opening) {
    link.opening = true;
    link.progress_ns = state_.now_ns;
    state_.watch(peer);
  }
}

void Links::on_refused(Peer& peer, RailLink& link) {
  const LocalRail& local = state_.rails[link.local.value];
  add_to(local.counters->errors, 1);
  set_down(peer, link, fabric::error_words(local.rail->last_error()));
}

// Links to peers that were never used count as up and cold.
void Links::count_in(const CounterBlocks& blocks, std::span<const std::uint32_t> rail_counts) {
  blocks_ = blocks;
  for (std::size_t i = 0; i < state_.rails.size(); ++i) {
    state_.rails[i].counters = &blocks.rails[i];
  }
  for (const std::uint32_t remotes : rail_counts) {
    for (std::uint32_t local = 0; local < state_.rails.size(); ++local) {
      for (std::uint32_t remote = 0; remote < remotes; ++remote) {
        const RailPair pair{RailIndex(local), RailIndex(remote)};
        state_.rails[local].links_cold +=
            state_.options.policy->is_first_choice(pair, remotes) ? 1 : 0;
        change_links_up(pair, remotes, 1);
      }
    }
  }
  for (const std::uint32_t pe : state_.met) {
    introduce(*state_.peers[pe]);
  }
}

void Links::introduce(Peer& peer) {
  const std::size_t first = std::size_t{peer.pe.value} * blocks_.peer_rail_stride;
  for (std::size_t i = 0; i < peer.rails.size() && !blocks_.peers.empty(); ++i) {
    peer.rails[i].counters = &blocks_.peers[first + i];
  }
  for (RailLink& link : peer.links) {
    if (state_.rails[link.local.value].nic_down) {
      set_down(peer, link, "the NIC is down");
    }
  }
}

void Links::change_links_up(RailPair pair, std::size_t remote_count, std::int32_t change) {
  LocalRail& local = state_.rails[pair.local.value];
  if (state_.options.policy->may_use(pair, remote_count)) {
    local.links_up += static_cast<std::uint32_t>(change);
    set_counter(local.counters->up, local.links_up > 0 ? 1U : 0U);
  }
}

void Links::become_warm(const Peer& peer, RailLink& link) {
  link.warm = true;
  link.opening = false;
  LocalRail& local = state_.rails[link.local.value];
  if (state_.options.policy->is_first_choice(link.pair(), peer.rails.size())) {
    --local.links_cold;
    set_counter(local.counters->warm, local.links_cold == 0 ? 1U : 0U);
  }
}

void Links::set_up(Peer& peer, RailLink& link) {
  if (!link.up) {
    log::info("rail {} reaches rail {} of PE {} again",
              words_of(state_.rails[link.local.value], link.local), link.remote.value,
              peer.pe.value);
  }
  if (!link.up) {
    start_even(state_.rails);
    start_even(peer.rails);
    change_links_up(link.pair(), peer.rails.size(), 1);
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
  state_.watch(peer);
  link.up = false;
  link.opening = false;
  change_links_up(link.pair(), peer.rails.size(), -1);
  link.down_ns = state_.now_ns;
  peer.masks[link.local.value] &= ~(LinkMask{1} << link.remote.value);
  if (!is_reachable(peer)) {
    peer.unreachable_since_ns = state_.now_ns;
  }
  // One failed cable takes down many links: one warning a second, the other links at level info.
  const bool is_news = state_.now_ns - state_.warned_ns > kWarnIntervalNs || !is_reachable(peer);
  state_.warned_ns = is_news ? state_.now_ns : state_.warned_ns;
  log::at(is_news ? log::Level::Warn : log::Level::Info,
          "rail {} does not reach rail {} of PE {} ({}): {}; {}",
          words_of(state_.rails[link.local.value], link.local), link.remote.value, peer.pe.value,
          peer.rails[link.remote.value].address_text, reason,
          is_reachable(peer) ? "continuing on the other rails" : "no other rail is left, retrying");
}

}  // namespace weft::transport::rails
