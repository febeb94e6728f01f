// The words and buffers of the heap's control bytes by which PEs meet. They lie at the same offset on
// every PE, so that one layout serves shared memory and fabric alike.
//
// Two kinds of words, none of which ever shrinks. Those that peers on other nodes add to, because
// signals of two calls may overtake each other and sums may not; and those that their own PE stores
// and the PEs of its node read.
#pragma once

#include <array>
#include <cstddef>
#include <cstdint>

#include "src/base/ids.hpp"
#include "src/base/word_bell.hpp"

namespace weft::collectives {

// Rounds of a dissemination over 2^32 PEs.
inline constexpr std::uint32_t kRoundCountMax = 32;
// Teams at a time, WEFT_TEAM_WORLD and WEFT_TEAM_NODE included.
inline constexpr std::uint32_t kTeamCountMax = 64;

struct alignas(kCacheLineBytes) ControlWord {
  std::uint64_t value = 0;
};

// What a PE asks for in a collective allocation or a new team, for all to compare.
struct alignas(kCacheLineBytes) CollectiveRequest {
  std::uint64_t kind = 0;
  std::uint64_t bytes = 0;
  std::uint64_t alignment = 0;
  std::uint64_t offset = 0;

  friend bool operator==(const CollectiveRequest&, const CollectiveRequest&) = default;
};

inline constexpr std::size_t kTeamBytes = std::size_t{256} << 10U;
inline constexpr std::size_t kPublishBytes = std::size_t{64} << 10U;
inline constexpr std::size_t kTeamInboxBytes = std::size_t{112} << 10U;
// Of the team of all PEs, where reductions between nodes are worth more.
inline constexpr std::size_t kWorldInboxBytes = std::size_t{4} << 20U;

// What a PE shows to its node in one call: first the bytes, then the call's position. Short data
// lies in the position's own cache line.
struct alignas(kCacheLineBytes) Publication {
  static constexpr std::size_t kDataBytes = kPublishBytes - 16;

  std::uint64_t position = 0;
  alignas(16) std::array<std::byte, kDataBytes> data;
};

struct TeamControl {
  // By their own PE, for its node.
  std::array<Publication, 2> published;  // of even and odd calls
  ControlWord ready;                     // the last call in which others may read this PE's `dest`
  ControlWord done;                      // the last call in which this PE has read all it reads
  ControlWord released;                  // the last sync that this leader's node may leave
  // By PEs of other nodes.
  std::array<ControlWord, kRoundCountMax> sync_arrivals;  // by round: how often the sender came
  ControlWord arrivals;                                   // pieces of all calls that have come
  ControlWord results;                                    // the same for results of reductions
  CollectiveRequest request;                              // read by peers between two syncs
  alignas(kCacheLineBytes) std::array<std::byte, kTeamInboxBytes> inbox;
};

static_assert(sizeof(TeamControl) <= kTeamBytes);

union TeamSlot {
  TeamControl control;
  std::array<std::byte, kTeamBytes> bytes;
};

struct ControlPage {
  WordBell doorbell;  // the first: rma finds it at the start of the control bytes
  ControlWord probe;  // the target of writes that only open or try a connection; nobody reads it
  alignas(kTeamBytes) std::array<TeamSlot, kTeamCountMax> teams;
  std::array<std::byte, kWorldInboxBytes> world_inbox;
};

// Bytes before the user's memory: whole huge pages, so that the heap itself starts on one. Nobody
// touches most of them, and pages that nobody touches cost nothing.
inline constexpr std::uint64_t kControlBytes = std::uint64_t{22} << 20U;
static_assert(sizeof(ControlPage) <= kControlBytes);

}  // namespace weft::collectives
