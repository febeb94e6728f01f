// Bookkeeping of rails and links: what the planner is told, what is counted at post, completion and
// failure, and which links are up. The only place that changes these numbers.
//
// Called under the transport's lock.
#pragma once

#include <array>
#include <cstdint>
#include <optional>
#include <span>
#include <string>

#include "src/transport/rails/rates.hpp"
#include "src/transport/rails/state.hpp"

namespace weft::transport::rails {

class Links {
 public:
  explicit Links(State& state) : state_(state), rates_(state) {}

  // All peers are known: finds out with which of its rails bursts to each begin. Before the first post.
  void place_senders();

  // The next piece towards `peer` for what is left of an operation, or empty if it has to wait.
  [[nodiscard]] std::optional<Piece> choose(Peer& peer,
                                            Direction direction,
                                            Rest rest,
                                            std::uint64_t counter);

  // Where a message of Weft's own goes, or empty if no rail reaches the peer now.
  [[nodiscard]] std::optional<Piece> choose_for_message(const Peer& peer,
                                                        std::uint64_t bytes) const;

  // `choose` was empty for the oldest operation towards `peer`: what comes after it counts its bytes on the rail
  // that it waits for, until the oldest are looked at again.
  void wait_for_room(Peer& peer, Direction direction, Rest rest);
  void look_again();

  // An operation of `total` bytes was accepted; `bytes` of it are with a rail; all of it is done, or failed.
  void on_accepted(Direction direction, std::uint64_t total);
  void on_planned(Direction direction, std::uint64_t total, std::uint64_t bytes);
  void on_finished(Direction direction);

  [[nodiscard]] bool is_reachable(const Peer& peer) const;

  [[nodiscard]] static RailLink& link_of(Peer& peer, const Posted& posted) {
    return peer.links[posted.link];
  }

  // Where all of this is counted from now on; before the first post, after all peers are known.
  void count_in(const CounterBlocks& blocks);

  // A post was accepted: fills `posted` with where it went.
  void on_posted(
      Peer& peer, RailLink& link, Direction direction, std::uint64_t bytes, Posted& posted);
  void on_completed(Peer& peer, const Posted& posted);
  void on_failed(Peer& peer, const Posted& posted);
  // A post was not accepted: for now, or for good.
  static void on_full(LocalRail& local);
  void on_refused(Peer& peer, RailLink& link);

  void set_up(Peer& peer, RailLink& link);
  // Logs and counts the first failure; later ones of the same link are silent.
  void set_down(Peer& peer, RailLink& link, const std::string& reason);

  [[nodiscard]] Rates& rates() { return rates_; }

 private:
  [[nodiscard]] std::uint64_t window_of(const LocalRail& rail) const;
  void change_links_up(const Peer& peer, const RailLink& link, std::int32_t change);
  void become_warm(const Peer& peer, RailLink& link);
  void take_back(Peer& peer, const Posted& posted, bool completed);
  void begin_burst(Peer& peer, Direction direction);
  std::optional<Piece> choose_small(Peer& peer, Direction direction, Rest rest, PlanInput& input);

  // What the planner is told, in arrays of the caller's.
  struct Sides {
    std::array<RailState, kRailCountMax> local;
    std::array<RailState, kRailCountMax> remote;
  };

  [[nodiscard]] bool may_keep_pairs(const Peer& peer, Direction direction) const;
  [[nodiscard]] std::uint32_t first_of(const Peer& peer, Direction direction) const;
  [[nodiscard]] bool is_regular(Direction direction, const PlanInput& input) const;
  [[nodiscard]] PlanInput describe(const Peer& peer, Direction direction, Sides& sides) const;
  // The loads of one side, valid until the next call of either.
  [[nodiscard]] std::span<RailLoad* const> local_loads();
  [[nodiscard]] std::span<RailLoad* const> loads_of(Peer& peer);

  State& state_;
  Rates rates_;
  std::array<RailLoad*, kRailCountMax> loads_{};
};

}  // namespace weft::transport::rails
