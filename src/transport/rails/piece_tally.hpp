// How far one put_signal has come at its target: the pieces that have arrived, and, once its signal is here,
// those that are missing. Whichever comes last completes it.
//
// Where a piece may come twice, because its rail died, counting says nothing any more: then the sender says
// when all are there (Force). Guarded by the transport's lock.
#pragma once

#include <cstdint>

#include "src/transport/rails/wire.hpp"

namespace weft::transport::rails {

class PieceTally {
 public:
  // What a signal that says how many pieces it has means.
  enum class Answer : std::uint8_t {
    Complete,  // all are here: apply it
    Wait,      // keep it until on_piece says so
    Ignore,    // only Force applies it
    Nonsense,  // it was said before, or more pieces than that are here already
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

  // True if it is the last one of a signal that waits.
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

  // From now on only Force applies it.
  void on_recovery() { set(State::Forced, 0); }

  // A signal is kept for it.
  [[nodiscard]] bool has_signal() const { return state() == State::Missing; }

 private:
  enum class State : std::uint8_t { Arrived, Missing, Forced };

  static constexpr std::uint32_t kCountBits = 30;

  [[nodiscard]] State state() const { return static_cast<State>(bits_ >> kCountBits); }

  // Of pieces that have arrived, or are missing.
  [[nodiscard]] std::uint32_t count() const { return bits_ & ((1U << kCountBits) - 1); }

  void set(State state, std::uint32_t count) {
    bits_ = static_cast<std::uint32_t>(state) << kCountBits | count;
  }

  std::uint32_t bits_ = 0;
};

static_assert(sizeof(PieceTally) == 4 && kPiecesMax < (1U << 30U));

}  // namespace weft::transport::rails
