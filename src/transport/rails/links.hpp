// The state of rails and links: the counts at post, completion and failure, and which links are up.
// Only this class changes these numbers; RailSelector reads them.
//
// Called under the transport's lock.
#pragma once

#include <cstddef>
#include <cstdint>
#include <span>
#include <string>

#include "src/transport/rails/rates.hpp"
#include "src/transport/rails/state.hpp"

namespace weft::transport::rails {

// Between two probes of a link that is down.
inline constexpr std::uint64_t kProbeIntervalNs = 250'000'000;

class Links {
 public:
  explicit Links(State& state) : state_(state), rates_(state) {}

  [[nodiscard]] bool is_reachable(const Peer& peer) const;

  [[nodiscard]] static RailLink& link_of(Peer& peer, const Posted& posted) {
    return peer.links[posted.link];
  }

  // The counters to update from now on. `rail_counts`: of the peers, by PE. Call when all peers are
  // known, before the first post.
  void count_in(const CounterBlocks& blocks, std::span<const std::uint32_t> rail_counts);
  // A peer from now on: sets its counters, and takes down its links over NICs that are down.
  void introduce(Peer& peer);

  // The rail accepted a post: counts it, and fills `posted` with its peer, link and bytes.
  void on_posted(
      Peer& peer, RailLink& link, Direction direction, std::uint64_t bytes, Posted& posted);
  void on_completed(Peer& peer, const Posted& posted);
  void on_failed(Peer& peer, const Posted& posted);
  // The rail did not accept a post: its queue is full, its connection is being opened, or the link
  // failed.
  void on_full(Peer& peer, RailLink& link);
  // A post found no room on a link that has not delivered anything yet: its connection is being
  // opened.
  void await_opening(Peer& peer, RailLink& link);
  void on_refused(Peer& peer, RailLink& link);

  void set_up(Peer& peer, RailLink& link);
  // Logs when a link that was up goes down. If it was down already, this only postpones its next
  // probe.
  void set_down(Peer& peer, RailLink& link, const std::string& reason);

  [[nodiscard]] Rates& rates() { return rates_; }

 private:
  void change_links_up(RailPair pair, std::size_t remote_count, std::int32_t change);
  void become_warm(const Peer& peer, RailLink& link);
  void take_back(Peer& peer, const Posted& posted, bool completed);

  State& state_;
  Rates rates_;
  CounterBlocks blocks_;
};

}  // namespace weft::transport::rails
