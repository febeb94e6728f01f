// What peers send us: batches of frames, and the arrival of their pieces. Applies signals when all of
// their data is here, and atomics at once; each exactly once, whatever is sent again.
//
// This is the target's progress engine for atomics: it uses the same instructions as node-local PEs.
// Called under the transport's lock, by whichever thread makes progress.
#pragma once

#include <cstddef>
#include <cstdint>
#include <optional>
#include <span>
#include <string_view>
#include <vector>

#include "src/transport/rails/frame_check.hpp"
#include "src/transport/rails/outbox.hpp"
#include "src/transport/rails/sender.hpp"
#include "src/transport/rails/state.hpp"

namespace weft::transport::rails {

class Receiver {
 public:
  Receiver(State& state, Links& links, Outbox& outbox, Sender& sender)
      : state_(state), links_(links), outbox_(outbox), sender_(sender) {}

  // A message arrived on local rail `local`. A peer whose message makes no sense is entered into
  // State::faulty, and nothing of the message is carried out.
  void on_message(std::span<const std::byte> message, RailIndex local);

  // A piece of a put with signal arrived.
  void on_immediate(std::uint32_t immediate);

  // A piece of the signal `sequence` will be sent again: from now on only Force applies it, because a
  // count could be complete before that piece has come. False if it was applied already.
  bool refuse_until_forced(Peer& peer, std::uint32_t sequence);

  // The peer has sent nonsense: it will be lost, once nobody is in the middle of its queues.
  void blame(Peer& peer, std::string_view fault);

  struct RecoverReply {
    Pe from;
    RecoverReplyFrame frame;
  };

  // Answers to Recovery, to be matched by it.
  std::vector<RecoverReply> recover_replies;

 private:
  static Arrivals& arrivals_of(Peer& peer);
  // The peer that sent it, or null if that is none of ours, or one that is lost.
  [[nodiscard]] Peer* sender_of(std::span<const std::byte> message, RailIndex local);
  [[nodiscard]] std::string_view fault_of_message(const Peer& peer,
                                                  std::span<const std::byte> message,
                                                  const BatchHeader& header) const;
  void handle(Peer& peer, const ReceivedFrame& received);
  void handle_signal(Peer& peer, const UpdateFrame& frame);
  void handle_flush(Peer& peer, const FlushFrame& frame);
  void apply(Peer& peer, const UpdateFrame& frame, std::span<const std::byte> data = {});
  // The old value; nothing if there is no such memory here.
  [[nodiscard]] std::optional<std::uint64_t> update(const UpdateFrame& frame,
                                                    std::span<const std::byte> data) const;
  static void forget_signal(Arrivals& arrivals, std::uint32_t sequence);
  // The operation was given up at its source: its sequence counts as applied.
  void skip(Peer& peer, std::uint32_t sequence);
  void settle(Peer& peer, std::uint32_t sequence);
  void mark_applied(Peer& peer, std::uint32_t sequence);

  State& state_;
  Links& links_;
  Outbox& outbox_;
  Sender& sender_;
};

}  // namespace weft::transport::rails
