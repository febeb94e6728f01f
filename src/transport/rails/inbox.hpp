// What peers send us: batches of frames, and the arrival of their pieces. Applies signals when all of
// their data is here, and atomics at once; each exactly once, whatever is sent again.
//
// This is the target's progress engine for atomics: it uses the same instructions as node-local PEs.
// Called under the transport's lock, by whichever thread makes progress.
#pragma once

#include <cstddef>
#include <cstdint>
#include <span>

#include "src/transport/rails/outbox.hpp"
#include "src/transport/rails/sender.hpp"
#include "src/transport/rails/state.hpp"

namespace weft::transport::rails {

class Inbox {
 public:
  Inbox(State& state, Outbox& outbox, Sender& sender)
      : state_(state), outbox_(outbox), sender_(sender) {}

  // A message arrived on local rail `local`. Malformed ones are logged and dropped.
  void on_message(std::span<const std::byte> message, RailIndex local);

  // A piece of a put with signal arrived.
  void on_immediate(std::uint32_t immediate);

  // A piece of the signal `sequence` will be sent again: from now on only Force applies it, because a
  // count could be complete before that piece has come. False if it was applied already.
  bool refuse_until_forced(Peer& peer, std::uint32_t sequence);

  // Answers from Recovery, to be matched by it.
  std::vector<Frame> recover_replies;

 private:
  static Arrivals& arrivals_of(Peer& peer);
  void handle(Peer& peer, const Frame& frame, std::span<const std::byte> data);
  void handle_signal(Peer& peer, const Frame& frame);
  void handle_flush(Peer& peer, const Frame& frame);
  void apply(Peer& peer, const Frame& frame);
  // The target of `bytes` at (region, offset), or null if a peer asks for what does not exist.
  [[nodiscard]] std::byte* memory_of(std::uint32_t region,
                                     std::uint64_t offset,
                                     std::uint64_t bytes) const;
  void mark_applied(Peer& peer, std::uint32_t sequence);

  State& state_;
  Outbox& outbox_;
  Sender& sender_;
};

}  // namespace weft::transport::rails
