// Splits operations into pieces and frames, and completes their counters when everything is done.
//
// An operation is done when its bytes are delivered and, if it has a sequence number, the target
// has applied it. Called under the transport's lock.
#pragma once

#include <string_view>

#include "src/transport/rails/failures.hpp"
#include "src/transport/rails/links.hpp"
#include "src/transport/rails/outbox.hpp"
#include "src/transport/rails/rail_selector.hpp"
#include "src/transport/rails/source_copies.hpp"
#include "src/transport/rails/state.hpp"

namespace weft::transport::rails {

class Sender {
 public:
  Sender(State& state, Links& links, RailSelector& selector, Outbox& outbox)
      : state_(state),
        links_(links),
        selector_(selector),
        outbox_(outbox),
        sources_(state),
        failures_(state) {}

  [[nodiscard]] bool is_message(const Operation& operation) const;

  // Accepts the operation and posts what may be posted now. Again: the backlog to the peer is too
  // large.
  Status accept(Peer& peer, const Operation& operation);

  // Retransmits failed pieces, as far as rails take them now. True if any was posted or ended.
  bool dispatch_retries(Peer& peer);
  // Posts what may be posted now of the oldest operation in the peer's queue, which must not be
  // empty. True if any of it was posted. The operation leaves the queue when all of it was.
  bool dispatch_oldest(Peer& peer);

  // Asks the peer for an acknowledgement when everything sent so far is visible there.
  void request_flush(Peer& peer);

  void on_piece_delivered(PieceRecord* piece);
  // The piece will never be delivered, because its peer is lost. Its operation fails.
  void drop_piece(PieceRecord* piece);
  // Each attempt has failed, the last as the provider says in `words`. Its operation fails; later
  // ones are not affected.
  void give_up(PieceRecord* piece, std::string_view words);
  void on_acked(Peer& peer, std::uint32_t floor);
  // False if no operation to this peer waits for this reply.
  bool on_reply(Peer& peer, std::uint64_t token, std::uint64_t value);

  // The peer is lost: all operations to it fail now.
  void fail_all(Peer& peer);

 private:
  [[nodiscard]] bool has_short_segments(const Operation& operation) const;
  void accept_message(Peer& peer, const Operation& operation);
  Status accept_sequenced(Peer& peer, OperationRecord& record);
  OperationRecord* make_record(const Operation& operation);
  void begin_pieces(OperationRecord& record);
  [[nodiscard]] bool is_eager_next(const OperationRecord& record) const;
  // Sends the next segment in a message. False if it has to wait.
  bool send_piece(Peer& peer, OperationRecord& record);
  // False if the rest has to wait.
  bool dispatch_one(Peer& peer, OperationRecord& record);
  fabric::PostResult post_piece(Peer& peer, PieceRecord& piece, const Piece& where);
  // True if the operation continues from a copy, because its memory cannot be registered.
  bool go_on_from_copy(OperationRecord& record, const fabric::Rail& rail);
  void on_planned(Peer& peer, OperationRecord& record);
  void finish_part(OperationRecord& record);
  void end_sequence(OperationRecord& record);

  State& state_;
  Links& links_;
  RailSelector& selector_;
  Outbox& outbox_;
  SourceCopies sources_;
  Failures failures_;
};

}  // namespace weft::transport::rails
