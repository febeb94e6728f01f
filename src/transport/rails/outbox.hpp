// Messages to peers. Frames are aggregated into batches; a batch is one send on one rail. The first
// frame is sent at once. While two batches are in flight to a peer, later frames are aggregated, so
// that the rate of frames is not limited by the rate of sends. A batch whose send fails is
// retransmitted on another rail. The receiver drops duplicates.
//
// Called under the transport's lock.
#pragma once

#include <bit>
#include <cstddef>
#include <span>

#include "src/transport/rails/links.hpp"
#include "src/transport/rails/rail_selector.hpp"
#include "src/transport/rails/state.hpp"

namespace weft::transport::rails {

class Outbox {
 public:
  Outbox(State& state, Links& links, const RailSelector& selector)
      : state_(state), links_(links), selector_(selector) {}

  // Appends a frame, followed by its data if there is any (at most RailsOptions::eager_bytes_max).
  // Always succeeds.
  template <FrameView View>
  void append(Peer& peer, const View& frame, std::span<const std::byte> data = {}) {
    append_frame(peer, std::bit_cast<Frame>(frame), data);
  }

  // As append, for a frame that is filled in where it lies in the message; valid until the next
  // call. What is copied just after it was written field by field costs more than all the rest of
  // appending it.
  UpdateFrame& append_update(Peer& peer, FrameKind kind, std::span<const std::byte> data);

  // Posts what may be posted now. `urgent`: also the open batch, if it would be held for
  // aggregation.
  void post(Peer& peer, bool urgent);

  [[nodiscard]] bool has_work(const Peer& peer) const {
    return peer.open != nullptr || !peer.closed.empty() || peer.announce_floor;
  }

  // The peer acknowledged all batches below `floor`.
  void on_arrived(Peer& peer, std::uint32_t floor);

  // Retransmits unacknowledged batches that went over a link that is down, or that are old. Their
  // completion proves nothing: some providers report a send as complete when it is in the socket.
  // Asks the peer for an acknowledgement if the oldest one is overdue.
  void check_kept(Peer& peer);

  // True if the backlog is so large that no more operations should be accepted.
  [[nodiscard]] bool is_congested(const Peer& peer) const {
    return peer.closed.size() >= kClosedMax || peer.kept.size() >= kKeptMax;
  }

  // Sends the rates of our rails to the peers that we communicate with, if they have changed.
  void tell_rates();

  void on_delivered(Peer& peer, Batch* batch);
  void on_failed(Peer& peer, Batch* batch);
  // The peer is lost: discards everything that is queued for it.
  void drop(Peer& peer);

 private:
  static constexpr std::size_t kClosedMax = 8;
  static constexpr std::size_t kKeptMax = 512;
  static constexpr std::uint32_t kGatherAbove = 2;
  static constexpr std::uint32_t kInFlightMax = 16;

  void append_frame(Peer& peer, const Frame& frame, std::span<const std::byte> data);
  // Where a frame of this kind goes; its data has been copied behind it.
  std::byte* make_room(Peer& peer, FrameKind kind, std::span<const std::byte> data);
  void open_batch(Peer& peer);
  void close_batch(Peer& peer);
  bool post_one(Peer& peer, Batch* batch);
  void retransmit_kept(Peer& peer, std::uint64_t old_ns);
  void tell_rates(Peer& peer);

  State& state_;
  Links& links_;
  const RailSelector& selector_;
};

}  // namespace weft::transport::rails
