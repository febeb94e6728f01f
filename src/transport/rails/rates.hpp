// How fast our rails are beside each other, and what is told of it: judged from bursts, sent to peers, heard from
// peers. Sets the weights by which Links shares out what is sent.
//
// Called under the transport's lock.
#pragma once

#include <cstdint>

#include "src/transport/rails/state.hpp"

namespace weft::transport::rails {

struct BurstEnd {
  std::uint64_t now_ns = 0;
  std::uint32_t peer_count = 0;  // PEs that it went to
  bool is_over = true;           // else it goes on, and rails are done with more or less of it
};

class Rates {
 public:
  explicit Rates(State& state) : state_(state) {}

  // A burst is over: what it tells of our rails, which then begin the next one.
  void end_burst(Direction direction);

  // Bursts that have lasted for long are judged before they end. Now and then.
  void judge_long_bursts();

  // What peers are told; anew when State::rates_version has changed.
  [[nodiscard]] RatesFrame frame() const;
  void on_told(Peer& peer, const RatesFrame& told);

 private:
  void judge_rails(Direction direction, BurstEnd end);
  void shift_suspects(Turn& ours);
  void renew_evenness();

  State& state_;
};

}  // namespace weft::transport::rails
