// Selects the rails of each piece and message: it follows the bursts of operations, describes both
// sides to the planner, and keeps what the planner shall know of the burst so far. Links has the
// numbers that it reads.
//
// Called under the transport's lock.
#pragma once

#include <array>
#include <cstdint>
#include <optional>
#include <span>

#include "src/transport/rails/rates.hpp"
#include "src/transport/rails/state.hpp"

namespace weft::transport::rails {

class RailSelector {
 public:
  RailSelector(State& state, Rates& rates) : state_(state), rates_(rates) {}

  // Computes the rail with which bursts to the peer begin. Call before the first post to it.
  void place(Peer& peer) const;

  // The next piece of the rest of an operation to `peer`. Empty if the operation has to wait.
  [[nodiscard]] std::optional<Piece> choose(Peer& peer,
                                            Direction direction,
                                            Rest rest,
                                            std::uint64_t counter);

  // The rails for one of Weft's own messages. Empty if no rail reaches the peer now.
  [[nodiscard]] std::optional<Piece> choose_for_message(const Peer& peer,
                                                        std::uint64_t bytes) const;

  // Call when `choose` was empty for the oldest operation to `peer`. Its bytes then count on the
  // rail that it waits for when later operations are planned, until look_again().
  void wait_for_room(Peer& peer, Direction direction, Rest rest);
  void look_again();

  // Call when an operation of `total` bytes was accepted; when `bytes` of it were posted; when it
  // completed or failed.
  void on_accepted(Direction direction, std::uint64_t total);
  void on_planned(Direction direction, std::uint64_t total, std::uint64_t bytes);
  void on_finished(Direction direction);

 private:
  // The planner's view of both sides, in arrays that the caller provides.
  struct Sides {
    std::array<RailState, kRailCountMax> local;
    std::array<RailState, kRailCountMax> remote;
  };

  [[nodiscard]] std::uint64_t window_of(const LocalRail& rail) const;
  void begin_burst(Peer& peer, Direction direction);
  std::optional<Piece> choose_small(Peer& peer, Direction direction, Rest rest, PlanInput& input);
  [[nodiscard]] bool may_keep_pairs(const Peer& peer, Direction direction) const;
  [[nodiscard]] std::uint32_t first_of(const Peer& peer, Direction direction) const;
  [[nodiscard]] bool is_regular(Direction direction, const PlanInput& input) const;
  [[nodiscard]] PlanInput describe(const Peer& peer, Direction direction, Sides& sides) const;
  // The loads of one side. Valid until the next call of either function.
  [[nodiscard]] std::span<RailLoad* const> local_loads();
  [[nodiscard]] std::span<RailLoad* const> loads_of(Peer& peer);

  State& state_;
  Rates& rates_;
  std::array<RailLoad*, kRailCountMax> loads_{};
};

}  // namespace weft::transport::rails
