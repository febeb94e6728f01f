// Messages to peers: frames are gathered into batches, a batch is one send on one rail. The first
// message goes out at once; while two batches are on their way, later ones gather, so that the rate
// of messages is not that of sends. A batch whose send fails goes out again on another rail; the
// receiver drops what it has seen.
//
// Called under the transport's lock.
#pragma once

#include <bit>
#include <cstddef>
#include <span>

#include "src/transport/rails/links.hpp"
#include "src/transport/rails/state.hpp"

namespace weft::transport::rails {

class Outbox {
 public:
  Outbox(State& state, Links& links) : state_(state), links_(links) {}

  // Adds a frame, with data behind it if there is any (at most RailsOptions::eager_bytes_max). Always
  // succeeds.
  template <FrameView View>
  void append(Peer& peer, const View& frame, std::span<const std::byte> data = {}) {
    append_frame(peer, std::bit_cast<Frame>(frame), data);
  }

  // Posts what may go now. `urgent` posts also what would rather gather.
  void post(Peer& peer, bool urgent);

  [[nodiscard]] bool has_work(const Peer& peer) const {
    return peer.open != nullptr || !peer.closed.empty() || peer.announce_floor;
  }

  // All batches below `floor` have arrived at the peer.
  void on_arrived(Peer& peer, std::uint32_t floor);

  // Sends again what went over links that are down, whatever the provider said of it: some report a
  // send as complete when it is in the socket. Asks for news of what has been kept for long.
  void check_kept(Peer& peer);

  // True if something that went over the link has not been said to have arrived.
  [[nodiscard]] bool has_kept(const Peer& peer, const RailLink& link) const;

  // True if so much is waiting that callers should hold back.
  [[nodiscard]] bool is_congested(const Peer& peer) const {
    return peer.closed.size() >= kClosedMax || peer.kept.size() >= kKeptMax;
  }

  // Tells peers that we have to do with how fast our rails are, if that has changed.
  void tell_rates();

  void on_delivered(Peer& peer, Batch* batch);
  void on_failed(Peer& peer, Batch* batch);
  // The peer is lost: nothing will go there.
  void drop(Peer& peer);

 private:
  static constexpr std::size_t kClosedMax = 8;
  static constexpr std::size_t kKeptMax = 512;
  static constexpr std::uint32_t kGatherAbove = 2;
  static constexpr std::uint32_t kInFlightMax = 16;

  void append_frame(Peer& peer, const Frame& frame, std::span<const std::byte> data);
  void open_batch(Peer& peer);
  void close_batch(Peer& peer);
  bool post_one(Peer& peer, Batch* batch);

  State& state_;
  Links& links_;
};

}  // namespace weft::transport::rails
