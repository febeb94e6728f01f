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

#include "src/transport/rails/state.hpp"

namespace weft::transport::rails {

enum class Direction : std::uint8_t { Write, Read };

class Links {
 public:
  explicit Links(State& state) : state_(state) {}

  // The next piece towards `peer` for what is left of an operation, or empty if it has to wait.
  [[nodiscard]] std::optional<Piece> choose(const Peer& peer,
                                            Direction direction,
                                            Rest rest,
                                            std::uint64_t counter) const;
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

  // Renews the weights from the measured rates.
  void update_weights();

 private:
  [[nodiscard]] std::uint64_t window_of(const RailLoad& load) const;
  void change_links_up(const Peer& peer, const RailLink& link, std::int32_t change);
  void become_warm(const Peer& peer, RailLink& link);
  void take_back(Peer& peer, const Posted& posted, bool completed);
  // The loads of one side, valid until the next call of either.
  [[nodiscard]] std::span<RailLoad* const> local_loads();
  [[nodiscard]] std::span<RailLoad* const> loads_of(Peer& peer);

  State& state_;
  std::array<RailLoad*, kRailCountMax> loads_{};
};

}  // namespace weft::transport::rails
