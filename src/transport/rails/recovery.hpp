// When a rail dies: takes its links out of the plan, ends the connection on both sides so that
// nothing of it arrives later, sends what was on it again over the others, and tries the link until
// it is back. A peer without any link for long enough is lost for good.
//
// A piece of a put_signal may have been counted by the target before its completion was lost; so the
// target is asked first, and a piece is never sent again for a signal that was applied.
// Called under the transport's lock.
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

  // The operation of `posted` did not happen. `error` is libfabric's.
  void on_failed(Posted& posted, int error);
  void on_probe_delivered(Probe& probe);
  // The provider has let go of a record whose work went on elsewhere.
  void on_abandoned(Posted& posted);

  // Posts a tiny write over the link: opens its connection, or finds out that it is back.
  // False if the rail has no room now.
  bool probe(Peer& peer, RailLink& link);

  // Answers and serves what peers asked since the last pass; the rails have been drained since.
  void serve_requests();

  // Peers that have sent nonsense are lost from here on; each is named once.
  void lose_faulty();

  // Looks for links that are silent, links that may be tried again, peers that are lost. At most
  // every few tens of milliseconds.
  void tick();

 private:
  void recover_piece(Peer& peer, PieceRecord* piece);
  void end_connection(Peer& peer, const RecoverFrame& frame);
  void on_recover_reply(Peer& peer, const RecoverReplyFrame& frame);
  void set_peer_rail_down(Peer& peer, RailIndex remote, const std::string& reason);
  [[nodiscard]] bool is_nic_down(RailIndex local) const;
  void check_nics();
  void abandon_posts(Peer& peer, RailLink& link);
  void check_link(Peer& peer, RailLink& link);
  void lose(Peer& peer);

  State& state_;
  Links& links_;
  Outbox& outbox_;
  Sender& sender_;
  Receiver& receiver_;
};

}  // namespace weft::transport::rails
