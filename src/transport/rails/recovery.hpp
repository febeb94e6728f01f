// Failover. When a link fails, the planner stops using it. Both sides close the connection, so that
// none of its data arrives later. Its operations are retransmitted over the other links, and it is
// probed until it is back. A peer that no link reaches for long enough is lost for good.
//
// The target may have counted a piece of a put_signal although its completion was lost. So the
// target is asked first, and no piece is retransmitted for a signal that was applied. Called under
// the transport's lock.
#pragma once

#include <cstdint>
#include <string>
#include <vector>

#include "src/transport/rails/links.hpp"
#include "src/transport/rails/outbox.hpp"
#include "src/transport/rails/receiver.hpp"
#include "src/transport/rails/sender.hpp"
#include "src/transport/rails/state.hpp"

namespace weft::transport::rails {

class Recovery {
 public:
  Recovery(State& state, Links& links, Outbox& outbox, Sender& sender, Receiver& receiver)
      : state_(state), links_(links), outbox_(outbox), sender_(sender), receiver_(receiver) {}

  // The provider reported that `posted` failed.
  void on_failed(Posted& posted, const fabric::Event& event);
  void on_probe_delivered(Probe& probe);
  // The provider has released a record whose work continued on another link.
  void on_abandoned(Posted& posted);

  // Posts a small write over the link, which opens its connection or finds out that the link is
  // back. False if the rail's queue is full.
  bool probe(Peer& peer, RailLink& link);

  // Handles the recovery requests and answers of peers. Call after the rails have been polled.
  void serve_requests();

  // Peers that sent an invalid message are lost from here on. Logs each once.
  void lose_faulty();

  // Its process has ended, which the rails alone learn late or, after an idle time, never. Logs it
  // once. Cuts no connection: its own are closed, and a cut would also hit those of other PEs at
  // the same address.
  void lose_ended(Peer& peer);

  // Checks for links without progress, links to probe, and peers to give up. Call every few tens of
  // milliseconds. Looks only at State::watched.
  void tick();

 private:
  void suspect_neighbours(Peer& peer, const RailLink& dead);
  [[nodiscard]] static bool is_given_up(const Peer& peer, Posted& posted, int error);
  void recover_piece(Peer& peer, PieceRecord* piece);
  void end_connection(Peer& peer, const RecoverFrame& frame);
  void on_recover_reply(Peer& peer, const RecoverReplyFrame& frame);
  void set_peer_rail_down(Peer& peer, RailIndex remote, const std::string& reason);
  [[nodiscard]] bool is_nic_down(RailIndex local) const;
  void set_local_rail_down(Peer& peer, RailIndex local);
  void check_nics();
  void check_peer(Peer& peer);
  [[nodiscard]] static bool needs_watch(const Peer& peer);
  void abandon_posts(Peer& peer, RailLink& link);
  [[nodiscard]] bool is_suspect(const RailLink& link);
  void check_link(Peer& peer, RailLink& link);
  void lose(Peer& peer);    // cuts its connections: it may be alive, and must not write any more
  void forget(Peer& peer);  // ends its operations

  State& state_;
  Links& links_;
  Outbox& outbox_;
  Sender& sender_;
  Receiver& receiver_;
  bool has_seen_opening_ = false;  // in this pass
};

}  // namespace weft::transport::rails
