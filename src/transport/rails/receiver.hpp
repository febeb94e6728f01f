// Receives what peers send: batches of frames, and immediate data of pieces. Applies a signal when
// all of its data has arrived, and an atomic at once. Each is applied exactly once, whatever is
// retransmitted.
//
// This is the target's progress engine for atomics. In memory of the host it uses the same CPU
// instructions as PEs of the same node; memory of a GPU is in region_memory.hpp. Called under the
// transport's lock, by whichever thread makes progress.
#pragma once

#include <cstddef>
#include <cstdint>
#include <optional>
#include <span>
#include <string_view>
#include <vector>

#include "src/transport/rails/contacts.hpp"
#include "src/transport/rails/frame_check.hpp"
#include "src/transport/rails/outbox.hpp"
#include "src/transport/rails/sender.hpp"
#include "src/transport/rails/state.hpp"

namespace weft::transport::rails {

class Receiver {
 public:
  Receiver(State& state, Contacts& contacts, Links& links, Outbox& outbox, Sender& sender)
      : state_(state), contacts_(contacts), links_(links), outbox_(outbox), sender_(sender) {}

  // A message arrived on local rail `local`. If it fails the checks of frame_check.hpp, none of it
  // is applied. The sender of an invalid message is added to State::faulty. One whose tag is wrong
  // is dropped, since anybody may have sent it.
  void on_message(std::span<std::byte> whole, RailIndex local);

  // A piece of a put with signal arrived.
  void on_immediate(std::uint32_t immediate);

  // A piece of the put_signal `sequence` will be retransmitted. From now on only Force applies its
  // signal, because a duplicate could complete the count before that piece has arrived. False if
  // the signal was applied already.
  bool refuse_until_forced(Peer& peer, std::uint32_t sequence);

  // The peer sent an invalid message. It is lost once the rails have been polled, when nothing
  // iterates over its queues.
  void blame(Peer& peer, std::string_view fault);

  struct RecoverReply {
    Pe from;
    RecoverReplyFrame frame;
  };

  // Answers to requests of Recovery, which takes them from here.
  std::vector<RecoverReply> recover_replies;

 private:
  Arrivals& arrivals_of(Peer& peer);
  // The sender. Null if it is no peer of this transport, or is lost.
  [[nodiscard]] Peer* sender_of(std::span<const std::byte> message, RailIndex local);
  // The message without its tag, if messages are signed. Empty if the tag is wrong.
  [[nodiscard]] std::optional<std::span<const std::byte>> open(const Peer& peer,
                                                               std::span<std::byte> message,
                                                               RailIndex local);
  [[nodiscard]] std::string_view fault_of_message(const Peer& peer,
                                                  std::span<const std::byte> message,
                                                  const BatchHeader& header) const;
  void handle(Peer& peer, const ReceivedFrame& received);
  void handle_signal(Peer& peer, const UpdateFrame& frame);
  void take_piece(Peer& peer, const UpdateFrame& frame, std::span<const std::byte> data);
  void force(Peer& peer, const UpdateFrame& frame);
  // All pieces of a signal that waits are here.
  void apply_waiting(Peer& peer, std::uint32_t sequence);
  void handle_flush(Peer& peer, const FlushFrame& frame);
  void apply(Peer& peer, const UpdateFrame& frame, std::span<const std::byte> data = {});
  static void forget_signal(Arrivals& arrivals, std::uint32_t sequence);
  // The source abandoned the operation: its sequence counts as applied.
  void skip(Peer& peer, std::uint32_t sequence);
  void settle(Peer& peer, std::uint32_t sequence);
  void mark_applied(Peer& peer, std::uint32_t sequence);

  State& state_;
  Contacts& contacts_;
  Links& links_;
  Outbox& outbox_;
  Sender& sender_;
};

}  // namespace weft::transport::rails
