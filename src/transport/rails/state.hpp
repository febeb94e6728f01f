// What the rails transport knows: its rails, its peers, the operations on their way. Plain data; the
// parts that act on it are Links, Outbox, Sender, Receiver and Recovery.
//
// Everything here is guarded by RailsTransport's one lock. A record is owned by a Pool; pointers to
// it stay valid until it is given back.
#pragma once

#include <array>
#include <compare>
#include <cstddef>
#include <cstdint>
#include <deque>
#include <limits>
#include <memory>
#include <optional>
#include <string>
#include <vector>

#include "src/base/counters.hpp"
#include "src/base/ids.hpp"
#include "src/base/rail_policies.hpp"
#include "src/base/status.hpp"
#include "src/fabric/rail.hpp"
#include "src/fabric/trial.hpp"
#include "src/transport/operation.hpp"
#include "src/transport/rails/burst_meter.hpp"
#include "src/transport/rails/copy_pool.hpp"
#include "src/transport/rails/piece_tally.hpp"
#include "src/transport/rails/planner.hpp"
#include "src/transport/rails/policies.hpp"
#include "src/transport/rails/pool.hpp"
#include "src/transport/rails/rail_pace.hpp"
#include "src/transport/rails/rate_meter.hpp"
#include "src/transport/rails/sequence_window.hpp"
#include "src/transport/rails/wire.hpp"

namespace weft::transport::rails {

enum class Direction : std::uint8_t { Write, Read };

struct RailsOptions {
  const Policy* policy = find_policy(kDefaultRailPolicy);
  std::uint64_t stripe_bytes_min = 16U << 10U;
  std::uint64_t eager_bytes_max = 1024;
  std::uint32_t rail_stall_ms = 650;
  std::uint32_t peer_lost_ms = 5000;
};

inline constexpr std::uint64_t kPieceBytesUnbounded = std::numeric_limits<std::uint64_t>::max();

struct Posted;
struct ReceiveBuffer;

// With which rail of a side a burst begins; of ours, or of a peer's.
struct Turn {
  std::uint64_t burst = 0;  // of which the rails' burst_bytes are
  std::uint32_t start = 0;
  std::uint32_t small_count = 0;  // operations too small to be cut, so far: they take turns
  // Ours: peers in this burst, and in the last one that was not too small to tell anything.
  std::uint32_t peer_count = 0;
  std::uint32_t last_peer_count = 0;
  // Ours: the burst from which on rails may be shifted again, to find a slow one.
  std::uint64_t next_shift = 0;
  std::uint64_t shift_interval = 4;
};

// One local rail to one rail of a peer: everything that an operation needs to be posted there. One
// value, never parallel arrays: an operation cannot take its key from another rail.
struct RailLink {
  RailIndex local;
  RailIndex remote;
  fabric::PeerHandle address;
  // Of the peer, as its rail `remote` exposes them; none where a number is free.
  std::vector<std::optional<fabric::RegionKey>> regions;

  bool has_immediate = true;  // both ends carry immediate data
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
  // By direction: since the rails of this side last started even, and of these in the current burst.
  std::array<std::uint64_t, 2> turn_bytes{};
  std::array<std::uint64_t, 2> burst_bytes{};
  std::uint64_t outstanding_bytes = 0;  // posted, not complete
  RailWeight weight;                    // of a peer's: what it has told us
};

struct LocalRail {
  std::unique_ptr<fabric::TrialMemory> trial;  // outlives the rail
  std::unique_ptr<fabric::Rail> rail;
  RailLoad load;
  RateMeter meter;
  std::array<RailPace, 2> paces;       // in this burst, by direction
  std::uint64_t weighed_ns = 0;        // when its weight was last renewed
  std::uint8_t told_rate = kFullRate;  // what peers are told of its weight: see RatesFrame
  RailCounters* counters = nullptr;    // null until Links::count_in
  // Bytes of operations that wait for room here, of those that may go first: who comes after them looks elsewhere.
  std::array<std::uint64_t, 2> awaited_bytes{};  // by direction
  bool full = false;  // refused a post in this pass; cleared by the next completion or pass
  std::vector<ReceiveBuffer*> unposted;  // receives that the NIC did not take: to be posted again
  bool refuses_receives = false;         // for good, it said: asked again at the next tick
  std::uint32_t outstanding = 0;
  std::uint32_t links_up = 0;    // of those that the policy may use
  std::uint32_t links_cold = 0;  // of those that the policy uses while all are up
};

struct PeerRail {
  std::vector<std::byte> address;
  PeerRailCounters* counters = nullptr;
  RailLoad load;
};

// An accepted operation until its counter has moved. `parts` counts what it still waits for: pieces
// on rails, the acknowledgement of its sequence, and being cut up at all.
struct OperationRecord : Tokened {
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
  bool refused = false;   // a rail refused it for good: the target is told to Skip its sequence
  bool in_burst = false;  // counted by State::bursts
  Lane lane;              // of the last piece
  SourceCopy* copy = nullptr;  // of the source, from State::copies
};

// What came back from a rail: which of these is it?
enum class PostedKind : std::uint8_t { Piece, Batch, Receive, Probe };

struct Posted : fabric::PostContext {
  explicit Posted(PostedKind k) : kind(k) {}

  PostedKind kind;
  Direction direction = Direction::Write;
  bool abandoned = false;  // its work goes on elsewhere; only the provider still knows it
  std::uint32_t peer = 0;
  std::uint32_t slot = 0;  // in RailLink::posts
  std::uint32_t link = 0;  // index into Peer::links
  std::uint64_t bytes = 0;
};

struct PieceRecord : Posted, Tokened {
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
};

struct Probe : Posted {
  Probe() : Posted(PostedKind::Probe) {}

  std::uint64_t word = 0;
};

// What a peer has sent us: see Receiver.
struct Arrivals {
  SequenceWindow batches;
  SequenceWindow applied;
  std::vector<PieceTally> tallies;      // by sequence modulo the window's span
  std::vector<UpdateFrame> waiting;     // signals whose data has not all arrived
  std::uint32_t announced_floor = 0;    // the last applied.floor() that the peer was told
  std::uint32_t announced_batches = 0;  // and the last batches.floor()
  std::uint32_t flush_below = 0;        // the peer wants to hear when the floor reaches this
  bool flush_wanted = false;
};

struct Peer {
  Pe pe;
  Status status = Status::Ok;
  std::string fault;  // it sent nonsense, this: it will be lost at the end of the pass
  std::vector<PeerRail> rails;
  std::vector<RailLink> links;                   // local * rails.size() + remote
  std::vector<LinkMask> masks;                   // links that are up, by local rail
  std::vector<std::uint64_t> outstanding_bytes;  // by local rail
  bool is_covered = false;                       // its rails and those that send to it: see covers
  std::array<Turn, 2> turns;                     // of its rails, by direction
  std::array<LinkMask, 2> burst_rails{};         // of ours that sent to it in that burst
  std::array<std::vector<std::uint8_t>, 2> pairings;  // in that burst, by direction and local rail
  std::array<std::vector<std::uint8_t>, 2> last_pairings;   // in the one before
  std::array<std::vector<std::uint8_t>, 2> small_pairings;  // of small operations, for good
  std::uint64_t unreachable_since_ns = 0;                   // 0: reachable

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
  std::uint32_t rates_told = 0;  // the last State::rates_version that the peer was told
  bool knows_slow = false;       // it has told us that it has a slow rail, or a peer that has one
  std::uint64_t kept_asked_ns = 0;  // when the peer was last asked what has arrived

  std::unique_ptr<Arrivals> arrivals;  // made when the peer first sends something
  bool active = false;                 // is in State::active

  [[nodiscard]] RailLink& link(RailIndex local, RailIndex remote) {
    return links[local.value * rails.size() + remote.value];
  }

  // It has told us how to reach the region.
  [[nodiscard]] bool has_region(RegionIndex index) const {
    const auto& known = links.front().regions;
    return index.value < known.size() && known[index.value].has_value();
  }

  // Nothing that comes from it counts any more.
  [[nodiscard]] bool is_gone() const { return status != Status::Ok || !fault.empty(); }
};

// A peer's request to end a connection; served after the rails have been drained.
struct RecoverRequest {
  std::uint32_t peer = 0;
  std::uint32_t passes_left = 8;  // passes over all rails between the cut and the answer
  RecoverFrame frame;
};

// What this PE has received and not carried out.
struct Dropped {
  std::uint64_t strangers = 0;  // messages and pieces that are not of a peer of this job
  std::uint64_t late = 0;       // of peers that are lost, and batches that came twice
  std::uint64_t answers = 0;    // to questions that nobody asks, or not any more
  std::uint64_t updates = 0;    // for memory that is not there any more, or not aligned here
};

// A peer with operations in its queue, and the number of the oldest.
struct Waiting {
  std::uint64_t number = 0;
  std::uint32_t peer = 0;

  friend auto operator<=>(const Waiting&, const Waiting&) = default;
};

struct State {
  RailsOptions options;
  Pe me;
  std::uint32_t pe_count = 0;
  std::uint32_t near_count = 1;               // PEs of this node, this one included
  std::vector<std::span<std::byte>> regions;  // what peers may reach: region 0 is the heap
  std::uint64_t probe_offset = 0;             // 8 bytes of region 0 that nobody reads
  std::size_t batch_bytes = kBatchBytes;      // of one message: what all rails send in one piece
  std::uint64_t rma_bytes_max = kPieceBytesUnbounded;  // of one piece: the same
  bool registers_local = false;  // some rail wants all local memory registered

  std::vector<LocalRail> rails;
  std::vector<std::unique_ptr<Peer>> peers;  // by PE; null for those reached otherwise
  std::vector<std::uint32_t> active;         // peers with work to post
  std::vector<Waiting> waiting;              // of those, in post_work: a heap, the oldest first
  std::vector<std::uint32_t> faulty;         // peers that sent nonsense in this pass
  std::vector<RecoverRequest> recover_requests;
  Dropped dropped;
  std::uint64_t operation_count = 0;
  std::array<BurstMeter, 2> bursts;  // by direction
  std::array<Turn, 2> turns;         // of our rails, by direction
  std::uint32_t rates_version = 0;   // of LocalRail::told_rate, all together
  bool has_slow_peer = false;        // some peer has told us of a slow rail, of its own
  bool is_job_even = true;           // nobody knows of a slow rail, as far as we have been told
  std::uint64_t outstanding = 0;     // posts that have not come back, receives not counted
  std::uint64_t now_ns = 0;          // of the current pass
  std::uint64_t caller_polls = 0;    // by the last post
  std::uint64_t warned_ns = 0;       // when the last dead link was reported
  std::uint64_t refused_ns = 0;      // when the last refused operation was reported

  Pool<OperationRecord> operations;
  Pool<PieceRecord> pieces;
  Pool<Batch> batches;
  CopyPool copies;
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
