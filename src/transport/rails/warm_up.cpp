#include "src/transport/rails/warm_up.hpp"

#include <algorithm>
#include <string>

#include "src/base/clock.hpp"
#include "src/base/error.hpp"
#include "src/base/log.hpp"

namespace weft::transport::rails {
namespace {

constexpr std::uint64_t kNsPerS = 1'000'000'000;
// How long warm-up waits for a link to a peer that another link has reached. A NIC in a network
// that does not reach the peer costs warm-up this time.
constexpr std::uint64_t kPatienceNs = 5 * kNsPerS;
constexpr std::uint64_t kReportIntervalNs = 10 * kNsPerS;

bool is_reached(const Peer& peer) {
  return std::ranges::any_of(peer.links, &RailLink::warm);
}

std::string rails_between(const State& state, const Peer& peer) {
  const fabric::Rail& first = *state.rails.front().rail;
  return fmt::format("{} x {} rails (ours: {} {}, its: {})", state.rails.size(), peer.rails.size(),
                     first.nic(), first.address_text(), peer.rails.front().address_text);
}

}  // namespace

WarmUp::WarmUp(State& state, Links& links, Recovery& recovery, std::span<Peer* const> peers)
    : state_(state),
      links_(links),
      recovery_(recovery),
      peers_(peers.begin(), peers.end()),
      next_report_ns_(kReportIntervalNs) {
  for (Peer* const peer : peers) {
    for (RailLink& link : peer->links) {
      // Connections that the policy would leave idle are not opened.
      if (state_.options.policy->is_first_choice(link.pair(), peer->rails.size())) {
        waiting_.push_back({peer, &link});
      }
    }
  }
}

bool WarmUp::open_link(const ColdLink& cold, bool is_patient) {
  const auto& [peer, link] = cold;
  if (peer->status != Status::Ok || link->warm) {
    return false;
  }
  if (link->up && !is_patient && is_reached(*peer)) {
    links_.set_down(*peer, *link, fmt::format("nothing answered for {} s", kPatienceNs / kNsPerS));
  }
  if (!link->up) {
    return !is_reached(*peer);
  }
  if (!link->probing) {
    static_cast<void>(recovery_.probe(*peer, *link));
  }
  return true;
}

bool WarmUp::open_links(std::uint64_t waited_ns) {
  state_.now_ns = now_ns();
  std::erase_if(waiting_,
                [&](const ColdLink& cold) { return !open_link(cold, waited_ns < kPatienceNs); });
  return !waiting_.empty();
}

void WarmUp::report(std::uint64_t waited_ns, std::uint32_t timeout_s) {
  if (waited_ns < next_report_ns_ || waiting_.empty()) {
    return;
  }
  next_report_ns_ += kReportIntervalNs;
  const Peer& peer = *waiting_.front().peer;
  log::warn("waiting for PE {} over {} for {} s, until {} s have passed (WEFT_BOOTSTRAP_TIMEOUT)",
            peer.pe.value, rails_between(state_, peer), waited_ns / kNsPerS, timeout_s);
}

void WarmUp::require_all() const {
  for (const Peer* peer : peers_) {
    if (!is_reached(*peer)) {
      fail(Status::PeerLost,
           "PE {} was not reached over any of {}; check the routes and firewalls between the NICs",
           peer->pe.value, rails_between(state_, *peer));
    }
  }
}

}  // namespace weft::transport::rails
