// Turns operations into pieces and frames, and moves their counters when all of it is done.
//
// An operation is "done" when its bytes are delivered and, if it has a sequence number, the target
// has applied it. Called under the transport's lock.
#pragma once

#include "src/transport/rails/links.hpp"
#include "src/transport/rails/outbox.hpp"
#include "src/transport/rails/state.hpp"

namespace weft::transport::rails {

class Sender {
 public:
  Sender(State& state, Links& links, Outbox& outbox)
      : state_(state), links_(links), outbox_(outbox) {}

  // Accepts the operation and posts what may go now; Again if too much is waiting for the peer.
  Status accept(Peer& peer, const Operation& operation);

  // Posts what may go now: retries, then queued operations, oldest first. True if something moved.
  bool dispatch(Peer& peer);

  // Asks the peer to tell when everything so far is visible.
  void request_flush(Peer& peer);

  void on_piece_delivered(PieceRecord* piece);
  // A piece will never be delivered, because its peer is lost: its operation fails.
  void drop_piece(PieceRecord* piece);
  void on_acked(Peer& peer, std::uint32_t floor);
  void on_reply(Peer& peer, std::uint64_t token, std::uint64_t value);

  // The peer is lost: every operation towards it fails now.
  void fail_all(Peer& peer);

 private:
  Status accept_sequenced(Peer& peer, OperationRecord& record);
  OperationRecord* make_record(const Operation& operation);
  void copy_source(OperationRecord& record);
  void post_small(Peer& peer, OperationRecord& record);
  bool dispatch_retries(Peer& peer);
  // False if the rest has to wait.
  bool dispatch_one(Peer& peer, OperationRecord& record);
  bool post_piece(Peer& peer, PieceRecord& piece, const Piece& where);
  void on_planned(Peer& peer, OperationRecord& record);
  [[nodiscard]] Frame frame_of(const OperationRecord& record, FrameKind kind) const;
  void finish_part(OperationRecord& record);

  State& state_;
  Links& links_;
  Outbox& outbox_;
};

}  // namespace weft::transport::rails
