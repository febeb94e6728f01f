// Judges from bursts how fast our rails are relative to each other, sends that to peers, and
// receives theirs. Sets the weights by which the planner divides data among the rails.
//
// Called under the transport's lock.
#pragma once

#include <cstdint>

#include "src/transport/rails/state.hpp"

namespace weft::transport::rails {

struct BurstEnd {
  std::uint64_t now_ns = 0;
  std::uint32_t peer_count = 0;  // PEs that it went to
  bool is_over = true;  // false: it continues, and rails have completed different parts of it
};

class Rates {
 public:
  explicit Rates(State& state) : state_(state) {}

  // A burst is over: judges our rails by it, and resets their paces for the next one.
  void end_burst(Direction direction);

  // Judges bursts that have lasted for long before they end. Call periodically.
  void judge_long_bursts();

  // The frame for peers. It is sent again when State::rates_version has changed.
  [[nodiscard]] RatesFrame frame() const;
  void on_told(Peer& peer, const RatesFrame& told);

 private:
  void judge_rails(Direction direction, BurstEnd end);
  void shift_suspects(Turn& ours);
  void renew_evenness();

  State& state_;
};

}  // namespace weft::transport::rails
