// What the rails transport knows: its rails, its peers, the operations on their way. Plain data; the
// parts that act on it are Links, Outbox, Sender, Inbox and Recovery.
//
// Everything here is guarded by RailsTransport's one lock. A record is owned by a Pool; pointers to
// it stay valid until it is given back.
#pragma once

#include <array>
#include <cstddef>
#include <cstdint>
#include <deque>
#include <memory>
#include <string>
#include <vector>

#include "src/base/counters.hpp"
#include "src/base/ids.hpp"
#include "src/base/status.hpp"
#include "src/fabric/rail.hpp"
#include "src/transport/operation.hpp"
#include "src/transport/rails/planner.hpp"
#include "src/transport/rails/pool.hpp"
#include "src/transport/rails/rate_meter.hpp"
#include "src/transport/rails/sequence_window.hpp"
#include "src/transport/rails/wire.hpp"

namespace weft::transport::rails {

struct RailsOptions {
  Policy policy = Policy::Balanced;
  std::uint64_t stripe_bytes_min = 64U << 10U;
  std::uint64_t eager_bytes_max = 1024;
  std::uint32_t rail_stall_ms = 650;
  std::uint32_t peer_lost_ms = 5000;
};

// Memory that peers may reach: region 0 is the heap. The same index on every PE.
struct LocalRegion {
  std::byte* base = nullptr;
  std::uint64_t bytes = 0;
};

struct Posted;

// One local rail to one rail of a peer: everything that an operation needs to be posted there. One
// value, never parallel arrays: an operation cannot take its key from another rail.
struct RailLink {
  RailIndex local;
  RailIndex remote;
  fabric::PeerHandle address;
  std::vector<fabric::RegionKey> regions;  // of the peer, as its rail `remote` exposes them

  bool up = true;
  bool warm = false;     // something has been delivered
  bool probing = false;  // a probe is outstanding

  [[nodiscard]] RailPair pair() const { return {local, remote}; }

  std::vector<Posted*> posts;     // outstanding, in no order
  std::uint64_t progress_ns = 0;  // last completion, or the post that ended idleness
  std::uint64_t down_ns = 0;      // when it went down
  std::uint64_t probe_at_ns = 0;  // while down: when to try again
};

// What is counted per rail, ours or one of a peer's.
struct RailLoad {
  // Since the rails of this side last started even.
  std::uint64_t write_turn_bytes = 0;  // towards the peer: puts, messages
  std::uint64_t read_turn_bytes = 0;   // from the peer: gets
  RateMeter meter;
  RailWeight weight;
  std::uint64_t weighed_samples = 0;  // of the meter, when the weight was last renewed
};

struct LocalRail {
  std::unique_ptr<fabric::Rail> rail;
  RailLoad load;
  RailCounters* counters = nullptr;  // null until Links::count_in
  bool full = false;  // refused a post in this pass; cleared by the next completion or pass
  std::uint32_t outstanding = 0;
  std::uint32_t links_up = 0;    // of those that the policy may use
  std::uint32_t links_cold = 0;  // of those that the policy uses while all are up
};

struct PeerRail {
  std::vector<std::byte> address;
  PeerRailCounters* counters = nullptr;
  RailLoad load{.weight = RailWeight(kPeerSlowBound)};
};

// An accepted operation until its counter has moved. `parts` counts what it still waits for: pieces
// on rails, the acknowledgement of its sequence, and being cut up at all.
struct OperationRecord {
  Operation operation;
  std::uint64_t number = 0;  // how many operations this PE had accepted before
  std::uint64_t planned_bytes = 0;
  std::uint32_t parts = 0;
  std::uint32_t pieces = 0;  // posted with immediate data
  std::uint32_t sequence = 0;
  bool sequenced = false;    // has a sequence number: PutSignal, Atomic
  bool wants_reply = false;  // done when the old value comes, not when it is acknowledged
  bool planned = false;      // every byte has been handed to a rail
  bool forced = false;       // the target cannot count its pieces: send Force when all are there
  bool failed = false;
  std::vector<std::byte>* copy = nullptr;  // of the source, from State::copies
};

// What came back from a rail: which of these is it?
enum class PostedKind : std::uint8_t { Piece, Batch, Receive, Probe };

struct Posted : fabric::PostContext {
  explicit Posted(PostedKind k) : kind(k) {}

  PostedKind kind;
  bool abandoned = false;  // its work goes on elsewhere; only the provider still knows it
  std::uint32_t peer = 0;
  std::uint32_t slot = 0;  // in RailLink::posts
  std::uint32_t link = 0;  // index into Peer::links
  std::uint64_t bytes = 0;
};

struct PieceRecord : Posted {
  PieceRecord() : Posted(PostedKind::Piece) {}

  OperationRecord* operation = nullptr;
  std::uint64_t offset = 0;
  bool with_immediate = false;
};

struct Batch : Posted {
  Batch() : Posted(PostedKind::Batch) { memory.resize(kBatchBytes); }

  bool delivered = false;  // says the provider; the peer has not said so yet
  bool arrived = false;    // says the peer, before the provider
  std::uint64_t posted_ns = 0;
  std::uint32_t signals = 0;  // among its frames

  [[nodiscard]] BatchHeader* header() { return reinterpret_cast<BatchHeader*>(memory.data()); }

  std::vector<std::byte> memory;
};

struct ReceiveBuffer : Posted {
  ReceiveBuffer() : Posted(PostedKind::Receive), memory(kBatchBytes) {}

  std::vector<std::byte> memory;
  std::uint32_t local = 0;
};

struct Probe : Posted {
  Probe() : Posted(PostedKind::Probe) {}

  std::uint64_t word = 0;
};

// A signal whose data has not all arrived.
struct WaitingSignal {
  Frame frame;
};

// What a peer has sent us: see Inbox.
struct Arrivals {
  SequenceWindow batches;
  SequenceWindow applied;
  std::vector<std::uint16_t> pieces;  // arrived, by sequence modulo the window's span
  std::vector<WaitingSignal> waiting;
  std::uint32_t announced_floor = 0;    // the last applied.floor() that the peer was told
  std::uint32_t announced_batches = 0;  // and the last batches.floor()
  std::uint32_t flush_below = 0;        // the peer wants to hear when the floor reaches this
  bool flush_wanted = false;
};

struct Peer {
  Pe pe;
  Status status = Status::Ok;
  std::vector<PeerRail> rails;
  std::vector<RailLink> links;                   // local * rails.size() + remote
  std::vector<LinkMask> masks;                   // links that are up, by local rail
  std::vector<std::uint64_t> outstanding_bytes;  // by local rail
  std::uint64_t unreachable_since_ns = 0;        // 0: reachable

  // Operations on their way there.
  std::deque<OperationRecord*> queue;          // not planned in full, oldest first
  std::deque<PieceRecord*> retry;              // pieces that failed and may go out again
  std::vector<PieceRecord*> recovering;        // pieces that failed; the target has been asked
  std::deque<OperationRecord*> unacked;        // from acked_floor on; null once answered by a reply
  std::vector<OperationRecord*> late_replies;  // acknowledged, but the old value is not here yet
  std::uint32_t next_sequence = 0;
  std::uint32_t acked_floor = 0;
  std::uint32_t flush_asked = 0;  // the sequence that the last Flush named

  // Messages on their way there.
  Batch* open = nullptr;      // being filled
  std::deque<Batch*> closed;  // to be posted
  std::deque<Batch*> kept;    // posted, until the peer says that they have arrived; by sequence
  std::uint32_t next_batch = 0;
  std::uint32_t batches_in_flight = 0;
  bool announce_floor = false;
  std::uint64_t kept_asked_ns = 0;  // when the peer was last asked what has arrived

  std::unique_ptr<Arrivals> arrivals;  // made when the peer first sends something
  bool active = false;                 // is in State::active

  [[nodiscard]] RailLink& link(RailIndex local, RailIndex remote) {
    return links[local.value * rails.size() + remote.value];
  }
};

// A peer's request to end a connection; served after the rails have been drained.
struct RecoverRequest {
  std::uint32_t peer = 0;
  std::uint32_t passes_left = 8;  // passes over all rails between the cut and the answer
  Frame frame;
};

struct State {
  RailsOptions options;
  Pe me;
  std::uint32_t pe_count = 0;
  std::vector<LocalRegion> regions;
  std::uint64_t probe_offset = 0;  // 8 bytes of region 0 that nobody reads

  std::vector<LocalRail> rails;
  std::vector<std::unique_ptr<Peer>> peers;  // by PE; null for those reached otherwise
  std::vector<std::uint32_t> active;         // peers with work to post
  std::vector<RecoverRequest> recover_requests;
  std::uint64_t operation_count = 0;
  std::uint64_t outstanding = 0;  // posts that have not come back, receives not counted
  std::uint64_t now_ns = 0;       // of the current pass
  std::uint64_t warned_ns = 0;    // when the last dead link was reported

  Pool<OperationRecord> operations;
  Pool<PieceRecord> pieces;
  Pool<Batch> batches;
  Pool<std::vector<std::byte>> copies;
  std::vector<std::unique_ptr<ReceiveBuffer>> receives;
  Pool<Probe> probes;

  void activate(Peer& peer) {
    if (!peer.active) {
      peer.active = true;
      active.push_back(peer.pe.value);
    }
  }
};

}  // namespace weft::transport::rails
