// Counts the pieces of one put_signal at its target: those that have arrived and, once the signal
// has arrived, those that are missing. The last arrival, piece or signal, completes it.
//
// After a rail has failed, a piece may arrive twice, so the count is useless. Then the sender tells
// when all pieces have been delivered (Force). Guarded by the transport's lock.
#pragma once

#include <cstdint>

#include "src/transport/rails/wire.hpp"

namespace weft::transport::rails {

class PieceTally {
 public:
  // What to do with a signal, which names its number of pieces.
  enum class Answer : std::uint8_t {
    Complete,  // all pieces have arrived: apply it
    Wait,      // keep it until on_piece returns true
    Ignore,    // only Force applies it
    Nonsense,  // a duplicate signal, or more pieces than it names have arrived
  };

  Answer on_signal(std::uint32_t pieces) {
    if (state() == State::Forced) {
      return Answer::Ignore;
    }
    if (state() == State::Missing || count() > pieces) {
      return Answer::Nonsense;
    }
    if (count() == pieces) {
      return Answer::Complete;
    }
    set(State::Missing, pieces - count());
    return Answer::Wait;
  }

  // True if this was the last missing piece of a signal that waits.
  bool on_piece() {
    switch (state()) {
      case State::Arrived:
        set(State::Arrived, count() + (count() < kPiecesMax ? 1 : 0));
        return false;
      case State::Missing:
        set(State::Missing, count() - (count() > 0 ? 1 : 0));
        return count() == 0;
      case State::Forced:
        return false;
    }
    return false;
  }

  // A piece is retransmitted: from now on only Force applies the signal.
  void on_recovery() { set(State::Forced, 0); }

  // False if no signal waits for pieces.
  [[nodiscard]] bool may_wait() const { return state() != State::Arrived; }

 private:
  enum class State : std::uint8_t { Arrived, Missing, Forced };

  static constexpr std::uint32_t kCountBits = 30;

  [[nodiscard]] State state() const { return static_cast<State>(bits_ >> kCountBits); }

  // The number of pieces that have arrived, or that are missing.
  [[nodiscard]] std::uint32_t count() const { return bits_ & ((1U << kCountBits) - 1); }

  void set(State state, std::uint32_t count) {
    bits_ = static_cast<std::uint32_t>(state) << kCountBits | count;
  }

  std::uint32_t bits_ = 0;
};

static_assert(sizeof(PieceTally) == 4 && kPiecesMax < (1U << 30U));

}  // namespace weft::transport::rails
