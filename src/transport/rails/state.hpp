// The state of the rails transport: its rails, its peers, and the operations in flight. Plain data.
// Links, RailSelector, Outbox, Sender, Receiver and Recovery act on it.
//
// RailsTransport's lock guards everything here. A Pool owns each record; pointers to it stay valid
// until it is given back.
#pragma once

#include <array>
#include <compare>
#include <cstddef>
#include <cstdint>
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
#include "src/gpu/word_memory.hpp"
#include "src/transport/operation.hpp"
#include "src/transport/rails/burst_meter.hpp"
#include "src/transport/rails/compact_queue.hpp"
#include "src/transport/rails/copy_pool.hpp"
#include "src/transport/rails/planner.hpp"
#include "src/transport/rails/policies.hpp"
#include "src/transport/rails/pool.hpp"
#include "src/transport/rails/rail_pace.hpp"
#include "src/transport/rails/rate_meter.hpp"
#include "src/transport/rails/seal.hpp"
#include "src/transport/rails/segment_list.hpp"
#include "src/transport/rails/sequence_window.hpp"
#include "src/transport/rails/tally_window.hpp"
#include "src/transport/rails/wire.hpp"

namespace weft::transport::rails {

enum class Direction : std::uint8_t { Write, Read };

struct RailsOptions {
  const Policy* policy = find_policy(kDefaultRailPolicy);
  std::uint64_t stripe_bytes_min = 16U << 10U;
  std::uint64_t eager_bytes_max = 1024;
  std::uint32_t rail_stall_ms = 650;
  std::uint32_t peer_lost_ms = 5000;
  bool may_spin = true;  // for the lock; not where PEs outnumber the cores
  // Messages are signed, with keys made from this secret of the job, which may be empty: see
  // seal.hpp.
  std::optional<std::string> secret = std::nullopt;
  std::uint64_t unregistered_bytes =
      0;  // at the start of region 0: no PE of another node accesses them
};

inline constexpr std::uint64_t kPieceBytesUnbounded = std::numeric_limits<std::uint64_t>::max();

struct Posted;
struct ReceiveBuffer;

// The rail of one side, ours or a peer's, with which a burst begins.
struct Turn {
  std::uint64_t burst = 0;  // the burst that the rails' burst_bytes belong to
  std::uint32_t start = 0;
  std::uint32_t small_count =
      0;  // operations too small to be split, so far: they use rails round-robin
  // Ours: the number of peers in this burst, and in the last burst that was not too small to be
  // judged.
  std::uint32_t peer_count = 0;
  std::uint32_t last_peer_count = 0;
  // Ours: the burst from which on rails may be shifted again, to identify a slow one.
  std::uint64_t next_shift = 0;
  std::uint64_t shift_interval = 4;
};

// One local rail with one rail of a peer: all that is needed to post an operation there, but for
// the keys of the peer's regions, which Peer::region_of finds by the link, so that an operation
// cannot use the key of another rail.
struct RailLink {
  RailIndex local;
  RailIndex remote;
  fabric::PeerHandle address;

  bool has_immediate = true;  // both ends carry immediate data
  bool up = true;
  bool warm = false;     // something was delivered over it
  bool probing = false;  // a probe is outstanding
  bool opening = false;  // cold, and a post found no room: its connection is being opened

  [[nodiscard]] RailPair pair() const { return {local, remote}; }

  std::vector<Posted*> posts;  // outstanding, in no order
  std::uint32_t kept = 0;      // batches that it has delivered and the peer has not acknowledged
  std::uint64_t progress_ns =
      0;  // the last completion or examination, or the first post after an idle time
  std::uint64_t down_ns = 0;      // when it went down
  std::uint64_t probe_at_ns = 0;  // while down: the time of the next probe
};

// Counts of one rail, ours or a peer's.
struct RailLoad {
  // By direction: since the last start_even, and in the current burst.
  std::array<std::uint64_t, 2> turn_bytes{};
  std::array<std::uint64_t, 2> burst_bytes{};
  std::uint64_t outstanding_bytes = 0;  // posted, not complete
  RailWeight weight;                    // for a peer's rail: as the peer reported it
};

struct LocalRail {
  std::unique_ptr<fabric::TrialMemory> trial;  // outlives the rail
  std::unique_ptr<fabric::Rail> rail;
  RailLoad load;
  RateMeter meter;
  std::array<RailPace, 2> paces;       // in this burst, by direction
  std::uint64_t weighed_ns = 0;        // when it was last judged
  std::uint8_t told_rate = kFullRate;  // its weight as peers are told: see RatesFrame
  RailCounters* counters = nullptr;    // null until Links::count_in
  // Bytes of the peers' oldest operations that wait for room on this rail. Later operations prefer
  // other rails.
  std::array<std::uint64_t, 2> awaited_bytes{};  // by direction
  bool full = false;      // refused a post in this pass; cleared by the next completion or pass
  bool nic_down = false;  // at the last tick
  std::vector<ReceiveBuffer*> unposted;  // receive buffers to be posted
  bool refuses_receives = false;  // the provider refused one for good; tried again at the next tick
  std::uint32_t outstanding = 0;
  std::uint32_t links_up = 0;    // among those that the policy may use
  std::uint32_t links_cold = 0;  // among those that the policy uses while all are up
};

struct PeerRail {
  std::vector<std::byte> address;
  // The peer's regions, as this rail exposes them. Empty where a number is free.
  std::vector<std::optional<fabric::RegionKey>> regions;
  std::string address_text;   // for display
  bool has_immediate = true;  // it takes immediate data
  PeerRailCounters* counters = nullptr;
  RailLoad load;
};

// An accepted operation, until its counter is completed. `parts` counts what it still waits for:
// pieces in flight, the acknowledgement or reply, and its planning.
struct OperationRecord : Tokened {
  Operation operation;
  std::uint64_t number = 0;  // operations that this PE accepted before, without atomics
  std::uint64_t planned_bytes = 0;
  std::uint32_t parts = 0;
  std::uint32_t pieces = 0;  // posted with immediate data
  std::uint32_t immediates =
      0;  // of Peer::immediates_max, taken for all its pieces until it is acknowledged
  std::uint32_t eager_pieces = 0;  // sent in messages
  std::uint32_t sequence = 0;
  bool sequenced = false;    // has a sequence number: PutSignal, Atomic
  bool wants_reply = false;  // done when the old value arrives, not when it is acknowledged
  bool planned = false;      // all pieces are posted
  bool has_begun = false;    // its first piece was planned
  bool forced = false;  // the target cannot count its pieces: send Force when all are delivered
  bool failed = false;
  bool refused = false;        // a rail refused it for good: the target must Skip its sequence
  bool in_burst = false;       // counted by State::bursts
  RailSpan span;               // of its last piece
  SourceCopy* copy = nullptr;  // of the source, from State::copies
  SegmentList* segments =
      nullptr;  // from State::segment_lists; null if it has one source and destination
};

// An operation with a sequence number, until it is acknowledged.
struct Unacked {
  OperationCounter* counter = nullptr;  // of an operation that is one frame
  OperationRecord* record = nullptr;    // of any other; null once its reply has arrived
};

// What a post to a rail is: an event of the rail names the Posted.
enum class PostedKind : std::uint8_t { Piece, Batch, Receive, Probe };

struct Posted : fabric::PostContext {
  explicit Posted(PostedKind k) : kind(k) {}

  PostedKind kind;
  Direction direction = Direction::Write;
  bool abandoned = false;  // its work continues elsewhere; only the provider still uses this record
  std::uint32_t faults =
      0;  // attempts that failed with an error about the operation itself, for pieces and batches
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

  bool delivered = false;  // completed by the provider, which does not prove that it has arrived
  bool arrived = false;    // acknowledged by the peer
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

// What a peer has sent to this PE: see Receiver.
struct Arrivals {
  explicit Arrivals(Pool<TallyBlock>& blocks) : tallies(blocks) {}

  SequenceWindow batches;
  SequenceWindow applied;
  TallyWindow tallies;                  // of sequences that are not applied
  std::vector<UpdateFrame> waiting;     // signals that wait for pieces
  std::uint32_t announced_floor = 0;    // the last applied.floor() that was sent to the peer
  std::uint32_t announced_batches = 0;  // the last batches.floor() that was sent to it
  std::uint32_t flush_below = 0;  // acknowledge when applied.floor() reaches this, if flush_wanted
  bool flush_wanted = false;
};

struct Peer {
  Pe pe;
  Status status = Status::Ok;
  std::string fault;  // why its message was invalid; it is lost once the rails have been polled
  bool refuses_messages = false;  // `fault` is instead the provider's error of all messages to it
  std::vector<PeerRail> rails;
  std::vector<RailLink> links;                        // local * rails.size() + remote; see Contacts
  std::vector<LinkMask> masks;                        // links that are up, by local rail
  std::vector<std::uint64_t> outstanding_bytes;       // by local rail
  bool is_covered = false;                            // see covers
  std::array<Turn, 2> turns;                          // for its rails, by direction
  std::array<LinkMask, 2> burst_rails{};              // our rails that sent to it in that burst
  std::array<std::vector<std::uint8_t>, 2> pairings;  // of that burst, by direction and local rail
  std::array<std::vector<std::uint8_t>, 2> last_pairings;   // of the burst before
  std::array<std::vector<std::uint8_t>, 2> small_pairings;  // of small operations, in all bursts
  std::uint64_t unreachable_since_ns = 0;                   // 0: reachable

  // Operations to this peer.
  CompactQueue<OperationRecord*> queue;        // not planned in full; the oldest first
  CompactQueue<PieceRecord*> retry;            // failed pieces to be retransmitted
  std::vector<PieceRecord*> recovering;        // failed pieces about which the target was asked
  CompactQueue<Unacked> unacked;               // by sequence, from acked_floor on
  std::vector<OperationRecord*> late_replies;  // acknowledged, but the reply has not arrived
  std::uint32_t next_sequence = 0;
  std::uint32_t acked_floor = 0;
  std::uint32_t flush_asked = 0;   // the sequence that request_flush last named
  std::uint32_t flush_needed = 0;  // behind the last operation that no reply acknowledges
  // Immediate data that the peer's completion queues may hold from this PE, and what operations
  // have taken of it.
  std::uint64_t immediates_max = std::numeric_limits<std::uint64_t>::max();
  std::uint64_t immediates_taken = 0;

  // Messages to this peer.
  Batch* open = nullptr;        // being filled
  CompactQueue<Batch*> closed;  // to be posted
  CompactQueue<Batch*> kept;    // closed or posted, until the peer acknowledges them; by sequence
  std::uint32_t next_batch = 0;
  std::uint32_t batches_in_flight = 0;
  bool announce_floor = false;
  std::uint32_t rates_told = 0;     // the last State::rates_version that was sent to the peer
  bool knows_slow = false;          // it reported that it or one of its peers has a slow rail
  std::uint64_t kept_asked_ns = 0;  // when the peer was last asked to acknowledge batches
  std::uint64_t kept_old_ns = 0;    // before then, none of them is old: see Outbox::check_kept

  std::unique_ptr<Arrivals> arrivals;  // created when the peer first sends something
  std::unique_ptr<Seal> seal;          // null if messages are not signed
  bool active = false;                 // is in State::active
  bool watched = false;                // is in State::watched
  std::uint64_t moved = 0;             // pieces of data to it and from it, counted in any unit

  [[nodiscard]] RailLink& link(RailIndex local, RailIndex remote) {
    return links[local.value * rails.size() + remote.value];
  }

  // True if the peer has sent its keys of the region.
  [[nodiscard]] bool has_region(RegionIndex index) const {
    const auto& known = rails.front().regions;
    return index.value < known.size() && known[index.value].has_value();
  }

  // Its key of a region that it has, for operations over the link.
  [[nodiscard]] const fabric::RegionKey& region_of(const RailLink& link, RegionIndex index) const {
    return *rails[link.remote.value].regions[index.value];
  }

  [[nodiscard]] SealPosition seal_position() const {
    return {.next_batch = next_batch,
            .next_sequence = next_sequence,
            .batches_floor = arrivals == nullptr ? 0 : arrivals->batches.floor(),
            .operation_floor = arrivals == nullptr ? 0 : arrivals->applied.floor()};
  }

  // True if everything that arrives from it is dropped.
  [[nodiscard]] bool is_gone() const { return status != Status::Ok || !fault.empty(); }
};

// A peer's request to close a connection. It is answered after the rails have been polled several
// times.
struct RecoverRequest {
  std::uint32_t peer = 0;
  std::uint32_t passes_left = 8;  // passes between closing the connection and the answer
  RecoverFrame frame;
};

// Counts of what this PE has received and not carried out.
struct Dropped {
  std::uint64_t strangers = 0;  // messages and pieces whose sender is not a peer of this job
  std::uint64_t late = 0;  // of lost peers; duplicate batches; pieces of operations that are done
  std::uint64_t answers = 0;  // stale, or to no request of this PE
  std::uint64_t updates = 0;  // of memory that was removed, or of words that are not aligned here
  std::uint64_t forged = 0;   // messages whose tag is wrong
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
  std::uint32_t near_count = 1;               // PEs that rails do not reach, this one included
  SealNonce nonce{};                          // if messages are signed
  std::vector<std::span<std::byte>> regions;  // memory that peers may access: region 0 is the heap
  // By region, as far as any is a GPU's: how the CPU reaches it; null: as its own.
  std::vector<gpu::WordMemory*> words;
  gpu::WordMemory* device_words = nullptr;  // any of them: all are of one GPU
  std::uint64_t probe_offset = 0;           // of 8 bytes in region 0 that nobody reads
  std::size_t batch_bytes =
      kBatchBytes;  // the largest batch that all rails can send, its tag not counted
  std::uint64_t rma_bytes_max = kPieceBytesUnbounded;  // the largest piece that all rails can post
  bool registers_local = false;  // a rail requires local memory to be registered

  std::vector<LocalRail> rails;
  // By PE; null for those that rails do not reach, and for those with which this PE has exchanged
  // nothing: Contacts makes them at first use.
  std::vector<std::unique_ptr<Peer>> peers;
  std::vector<std::uint32_t> met;      // the peers that are not null, in the order of first use
  std::vector<std::uint32_t> active;   // peers with work to post
  std::vector<std::uint32_t> watched;  // peers that may need attention at a tick: see Recovery
  std::vector<Waiting> waiting;        // used in post_work: a heap, the oldest first
  std::vector<std::uint32_t> faulty;   // peers that sent an invalid message in this pass
  std::vector<RecoverRequest> recover_requests;
  Dropped dropped;
  std::uint64_t operation_count = 0;
  std::array<BurstMeter, 2> bursts;        // by direction
  std::array<Turn, 2> turns;               // for our rails, by direction
  std::uint32_t rates_version = 0;         // incremented when the content of RatesFrame changes
  std::uint32_t rates_offered = 0;         // the version that all peers with traffic have been told
  bool is_starting = false;                // warm-up: peers that no link reaches yet are not lost
  std::uint32_t slow_peers = 0;            // that have reported a slow rail of their own
  std::uint32_t peers_that_know_slow = 0;  // that have reported a slow rail, theirs or another's
  bool is_job_even = true;                 // neither this PE nor any peer has reported a slow rail
  std::uint64_t outstanding = 0;           // posts without a completion yet, receives not counted
  std::uint64_t now_ns = 0;                // of the current pass
  std::uint64_t caller_polls = 0;          // at the last post
  std::uint64_t warned_ns = 0;             // when a failed link was last reported as a warning
  std::uint64_t refused_ns = 0;            // when a refused operation was last reported

  Pool<OperationRecord> operations;
  Pool<PieceRecord> pieces;
  Pool<Batch> batches;
  Pool<TallyBlock> tally_blocks;
  CopyPool copies;
  Pool<SegmentList> segment_lists;
  std::vector<std::unique_ptr<ReceiveBuffer>> receives;
  Pool<Probe> probes;

  [[nodiscard]] gpu::WordMemory* words_of(std::uint32_t region) const {
    return region < words.size() ? words[region] : nullptr;
  }

  void activate(Peer& peer) {
    if (!peer.active) {
      peer.active = true;
      active.push_back(peer.pe.value);
    }
  }

  void watch(Peer& peer) {
    if (!peer.watched) {
      peer.watched = true;
      watched.push_back(peer.pe.value);
    }
  }
};

}  // namespace weft::transport::rails
