// Which rail of ours and which rail of the peer carry the next piece of an operation. Pure: a
// function of its arguments, no clock, no memory, no communication. design §4 compares the policies.
//
// `balanced` counts bytes, never operations: any count of operations breaks when small control
// messages alternate with data (measured: half the rate).
#pragma once

#include <array>
#include <cstdint>
#include <optional>
#include <span>
#include <string_view>
#include <vector>

#include "src/base/ids.hpp"

namespace weft::transport::rails {

enum class Policy : std::uint8_t {
  Single,    // rail 0 to rail 0
  Coupled,   // round robin, the peer's rail of the same index
  Offset,    // round robin, (me + peer + counter) mod n
  Balanced,  // fewest bytes, on both sides, weighted by rate
  Aligned,   // as balanced, the peer's rail of the same index
};

// Throws Error for a name that is not a policy.
[[nodiscard]] Policy parse_policy(std::string_view name);
[[nodiscard]] std::string_view to_string(Policy policy);

// What the planner knows of one rail, ours or the peer's.
struct RailState {
  std::uint64_t sent_bytes = 0;         // so far (to this peer, for a peer's rail)
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

// Whether the policy may use these rails together at all.
[[nodiscard]] bool may_use(Policy policy, RailPair pair, std::size_t remote_count);
// Whether it does while every link is up.
[[nodiscard]] bool is_first_choice(Policy policy, RailPair pair, std::size_t remote_count);

struct PlanInput {
  Policy policy = Policy::Balanced;
  Pe me;
  Pe peer;
  std::span<const RailState> local;
  std::span<const RailState> remote;
  std::span<const LinkMask> links;  // by local rail
  std::uint64_t counter = 0;        // operations planned so far by this PE
  std::uint64_t stripe_bytes_min = 64U << 10U;
  std::uint64_t piece_bytes_max = 1U << 20U;
};

// The rest of an operation: `total` bytes in all, of which [offset, total) is not planned yet.
struct Rest {
  std::uint64_t total = 0;
  std::uint64_t offset = 0;
};

struct Piece {
  RailIndex local;
  RailIndex remote;
  std::uint64_t offset = 0;
  std::uint64_t bytes = 0;

  friend bool operator==(const Piece&, const Piece&) = default;
};

// The next piece, or empty if every rail that the policy allows is full or down. Small pieces (below
// stripe_bytes_min) ignore the windows, so that control messages do not wait behind bulk data.
[[nodiscard]] std::optional<Piece> next_piece(const PlanInput& input, Rest rest);

// True if some link that the policy may use is up: false means waiting is useless.
[[nodiscard]] bool is_reachable(const PlanInput& input);

// The whole operation, as if nothing completed meanwhile and windows had no end.
[[nodiscard]] std::vector<Piece> plan(const PlanInput& input, std::uint64_t total);

}  // namespace weft::transport::rails
