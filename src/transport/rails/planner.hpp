// Which rail of ours and which rail of the peer carry the next piece of an operation: what a plan is made of, and
// the questions that the transport asks; each policy (policies.hpp) has its own answers.
//
// Pure: functions of their arguments, no clock, no memory, no communication.
#pragma once

#include <array>
#include <cstdint>
#include <optional>
#include <span>
#include <vector>

#include "src/base/ids.hpp"

namespace weft::transport::rails {

// What the planner knows of one rail, ours or the peer's.
struct RailState {
  std::uint64_t sent_bytes = 0;         // in this burst (to this peer, for a peer's rail)
  std::uint64_t awaited_bytes = 0;      // of older operations that wait for room on it
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

// The peer's rail to which a local rail goes in this burst, by local rail.
using Pairing = std::span<const std::uint8_t>;
inline constexpr std::uint8_t kUnpaired = 0xFF;

struct PlanInput {
  const Policy* policy = nullptr;  // never null where a plan is asked for
  Pe me;
  Pe peer;
  std::span<const RailState> local;
  std::span<const RailState> remote;
  std::span<const LinkMask> links;  // by local rail
  std::uint64_t counter = 0;        // operations planned so far by this PE
  std::uint64_t stripe_bytes_min = 16U << 10U;
  std::uint64_t piece_bytes_max = 1U << 20U;
  std::uint32_t local_start = 0;   // whose turn it is when all have carried the same: ours
  std::uint32_t remote_start = 0;  // and the peer's: see first_remote
  bool keeps_pairs = false;        // see covers; and all operations have one size
  Pairing pairing;                 // empty: nothing has gone to this peer in this burst
  Pairing last_pairing;            // and in the burst before
  bool is_regular = true;          // all operations have one size, and go to rails that are as fast
  bool is_even = true;             // the peer has as many rails
  // Still to be planned before this PE waits, as far as one can tell, this operation included.
  std::uint64_t expected_bytes = 0;
};

// The peer's rail with which `me` begins, so that the PEs that send to one peer at the same moment begin with
// different rails. They are neighbours: those of a node, or those that visit me + k in turn. Where they are
// fewer than the rails, they keep apart by as many rails as there are for each.
struct FirstRemote {
  Pe me;
  Pe peer;
  std::uint32_t pe_count = 1;
  std::uint32_t near_count = 1;  // PEs of this node
};

[[nodiscard]] std::uint32_t first_remote(const FirstRemote& of, std::uint32_t remote_count);
// Whether the senders to one peer are as many for each of its rails, or each has as many rails.
[[nodiscard]] bool covers(const FirstRemote& of, std::uint32_t remote_count);

// The part of an operation that goes over one pair of rails, in pieces of at most piece_bytes_max.
struct Lane {
  RailIndex local;
  RailIndex remote;
  std::uint64_t end = 0;    // offset in the operation
  bool is_striped = false;  // every rail takes its part of this operation

  friend bool operator==(const Lane&, const Lane&) = default;
};

// The rest of an operation: `total` bytes in all, of which [offset, total) is not planned yet.
struct Rest {
  std::uint64_t total = 0;
  std::uint64_t offset = 0;
  Lane lane;  // of the piece before
};

struct Piece {
  RailIndex local;
  RailIndex remote;
  std::uint64_t offset = 0;
  std::uint64_t bytes = 0;
  Lane lane;

  friend bool operator==(const Piece&, const Piece&) = default;
};

// The next piece, or empty if every rail that the policy allows is full or down. Small pieces (below
// stripe_bytes_min) ignore the windows, so that control messages do not wait behind bulk data.
[[nodiscard]] std::optional<Piece> next_piece(const PlanInput& input, Rest rest);

// Where a message of Weft's own goes: barriers, signals and replies, for which somebody waits. The rails on which
// the least of ours is on the way, so the peer's rail with which this PE begins as long as that is free: the
// others are those that other senders are using.
[[nodiscard]] std::optional<Piece> next_message(const PlanInput& input, std::uint64_t bytes);

// The local rail that the rest waits for after next_piece was empty; empty if every rail is down, or if the policy
// waits for no rail in particular.
[[nodiscard]] std::optional<RailIndex> awaited_rail(const PlanInput& input, Rest rest);

// True if some link that the policy may use is up: false means waiting is useless.
[[nodiscard]] bool is_reachable(const PlanInput& input);

// The whole operation, as if nothing completed meanwhile and windows had no end.
[[nodiscard]] std::vector<Piece> plan(const PlanInput& input, std::uint64_t total);

}  // namespace weft::transport::rails
