// Splits operations into pieces and frames, and completes their counters when everything is done.
//
// An operation is done when its bytes are delivered and, if it has a sequence number, the target has applied it.
// Called under the transport's lock.
#pragma once

#include "src/transport/rails/links.hpp"
#include "src/transport/rails/outbox.hpp"
#include "src/transport/rails/state.hpp"

namespace weft::transport::rails {

class Sender {
 public:
  Sender(State& state, Links& links, Outbox& outbox)
      : state_(state), links_(links), outbox_(outbox) {}

  // Accepts the operation and posts what may be posted now. Again: the backlog to the peer is too large.
  Status accept(Peer& peer, const Operation& operation);

  // Retransmits failed pieces, as far as rails take them now. True if any was posted or ended.
  bool dispatch_retries(Peer& peer);
  // Posts what may be posted now of the oldest operation in the peer's queue, which must not be empty. True if any of
  // it was posted. The operation leaves the queue when all of it was.
  bool dispatch_oldest(Peer& peer);

  // Asks the peer for an acknowledgement when everything sent so far is visible there.
  void request_flush(Peer& peer);

  void on_piece_delivered(PieceRecord* piece);
  // The piece will never be delivered, because its peer is lost. Its operation fails.
  void drop_piece(PieceRecord* piece);
  void on_acked(Peer& peer, std::uint32_t floor);
  // False if no operation to this peer waits for this reply.
  bool on_reply(Peer& peer, std::uint64_t token, std::uint64_t value);

  // The peer is lost: all operations to it fail now.
  void fail_all(Peer& peer);

 private:
  Status accept_sequenced(Peer& peer, OperationRecord& record);
  [[nodiscard]] bool is_better_copied(const Operation& operation) const;
  OperationRecord* make_record(const Operation& operation);
  void copy_source(OperationRecord& record);
  bool copy_readable(OperationRecord& record);
  void begin_pieces(OperationRecord& record);
  // False if the rest has to wait.
  bool dispatch_one(Peer& peer, OperationRecord& record);
  fabric::PostResult post_piece(Peer& peer, PieceRecord& piece, const Piece& where);
  // The rail takes neither this memory nor a copy of it. The operation fails; later ones are not affected.
  void refuse(OperationRecord& record, const fabric::Rail& rail);
  // True if the operation continues from a copy, because its memory cannot be registered.
  bool go_on_from_copy(OperationRecord& record, const fabric::Rail& rail);
  void on_planned(Peer& peer, OperationRecord& record);
  [[nodiscard]] UpdateFrame frame_of(const OperationRecord& record, FrameKind kind) const;
  void finish_part(OperationRecord& record);
  void end_sequence(OperationRecord& record);

  State& state_;
  Links& links_;
  Outbox& outbox_;
};

}  // namespace weft::transport::rails
