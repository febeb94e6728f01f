// Load balancing: decides which rail of ours and which rail of the peer carry the next piece of an
// operation. Declares the input of a plan and the functions that the transport calls. Each policy
// (policies.hpp) implements them in its own way.
//
// Pure functions of their arguments: no clock, no state, no communication.
#pragma once

#include <array>
#include <cstdint>
#include <optional>
#include <span>
#include <vector>

#include "src/base/ids.hpp"

namespace weft::transport::rails {

// What the planner knows about one rail, ours or the peer's.
struct RailState {
  std::uint64_t sent_bytes = 0;         // in this burst (to this peer, for a peer's rail)
  std::uint64_t awaited_bytes = 0;      // of older operations that wait for room in its window
  std::uint64_t outstanding_bytes = 0;  // posted, not complete
  std::uint64_t window_bytes = 0;       // most that may be outstanding
  double weight = 1.0;                  // rate relative to the fastest rail of the same side
  bool healthy = true;
};

// The links between the two sides: bit r of links[l] says that local rail l reaches peer's rail r.
using LinkMask = std::uint32_t;

// One of our rails with one of the peer's.
struct RailPair {
  RailIndex local;
  RailIndex remote;
};

struct Policy;  // policies.hpp

// The peer's rail with which a local rail is paired in a burst, by local rail.
using Pairing = std::span<const std::uint8_t>;
inline constexpr std::uint8_t kUnpaired = 0xFF;

struct PlanInput {
  const Policy* policy = nullptr;  // never null where a plan is asked for
  Pe me;
  Pe peer;
  std::span<const RailState> local;
  std::span<const RailState> remote;
  std::span<const LinkMask> links;  // by local rail
  std::uint64_t counter = 0;  // operations that this PE accepted before this one, without atomics
  std::uint64_t stripe_bytes_min = 16U << 10U;
  std::uint64_t piece_bytes_max = 1U << 20U;
  std::uint32_t local_start = 0;   // our rail that comes first when all have carried the same
  std::uint32_t remote_start = 0;  // the same of the peer's rails: see first_remote
  bool keeps_pairs = false;        // see RailSelector::may_keep_pairs
  Pairing pairing;                 // empty: nothing was sent to this peer in this burst
  Pairing last_pairing;            // in the previous burst
  bool is_regular = true;          // all operations have one size, and the peer has no slow rail
  bool is_even = true;             // the peer has as many rails as this PE
  bool has_other_peers = false;    // the previous burst had several
  // Estimate of the bytes still to be planned in this burst, including this operation.
  std::uint64_t expected_bytes = 0;
};

// The arguments of first_remote, which returns the peer's rail with which bursts from `me` begin.
// PEs that send to one peer at the same moment get different rails. Such PEs are neighbours: PEs of
// one node, or PEs that each send to the PEs after them in turn. If there are fewer senders than
// rails, they begin rails / senders apart.
struct FirstRemote {
  Pe me;
  Pe peer;
  std::uint32_t pe_count = 1;
  std::uint32_t near_count = 1;  // PEs of this node
};

[[nodiscard]] std::uint32_t first_remote(const FirstRemote& of, std::uint32_t remote_count);
// True if senders and rails of the peer divide evenly: each rail has as many senders, or each
// sender as many rails.
[[nodiscard]] bool covers(const FirstRemote& of, std::uint32_t remote_count);

// A part of an operation that goes over one pair of rails, in pieces of at most piece_bytes_max.
struct RailSpan {
  RailIndex local;
  RailIndex remote;
  std::uint64_t end = 0;    // offset in the operation
  bool is_striped = false;  // the operation is striped over all rails

  friend bool operator==(const RailSpan&, const RailSpan&) = default;
};

// The rest of an operation of `total` bytes: [offset, total) is not planned yet.
struct Rest {
  std::uint64_t total = 0;
  std::uint64_t offset = 0;
  RailSpan span;  // of the previous piece
};

struct Piece {
  RailIndex local;
  RailIndex remote;
  std::uint64_t offset = 0;
  std::uint64_t bytes = 0;
  RailSpan span;

  friend bool operator==(const Piece&, const Piece&) = default;
};

// The next piece. Empty if the operation has to wait: no allowed rail is usable, or there is no
// room in the window of the rail that the policy chooses. Operations below stripe_bytes_min ignore
// the windows, so that they do not wait behind bulk data.
[[nodiscard]] std::optional<Piece> next_piece(const PlanInput& input, Rest rest);

// The rails for one of Weft's own messages. These carry signals, atomics and acknowledgements, for
// which somebody waits. The policies that balance bytes use the rails with the fewest outstanding
// bytes of this PE. While nothing is outstanding, that is the peer's rail with which this PE
// begins; other senders are using the other rails.
[[nodiscard]] std::optional<Piece> next_message(const PlanInput& input, std::uint64_t bytes);

// The local rail for which the rest waits after next_piece was empty. Empty if no rail is usable,
// or if the policy waits for no rail in particular.
[[nodiscard]] std::optional<RailIndex> awaited_rail(const PlanInput& input, Rest rest);

// True if a link that the policy may use is up. If not, waiting is useless.
[[nodiscard]] bool is_reachable(const PlanInput& input);

// All pieces of the operation, as if nothing completed meanwhile and windows were unlimited.
[[nodiscard]] std::vector<Piece> plan(const PlanInput& input, std::uint64_t total);

}  // namespace weft::transport::rails
