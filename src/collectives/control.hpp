// The words and buffers in the heap's control bytes by which PEs synchronize. They are at the same
// offset on every PE, so that one layout serves both shared memory and the fabric.
//
// There are two kinds of words; neither ever decreases. PEs on other nodes add to the first kind,
// because signals of two calls may be reordered, which a sum tolerates. Each PE stores its own
// words of the second kind, and the PEs of its node read them.
#pragma once

#include <array>
#include <cstddef>
#include <cstdint>

#include "src/base/ids.hpp"
#include "src/base/word_bell.hpp"

namespace weft::collectives {

// The rounds of a dissemination barrier over 2^32 PEs.
inline constexpr std::uint32_t kRoundCountMax = 32;
// Teams that exist at a time: the four predefined ones, and 128 of the program.
inline constexpr std::uint32_t kTeamCountMax = 132;

struct alignas(kCacheLineBytes) ControlWord {
  std::uint64_t value = 0;
};

// A PE's arguments in a collective allocation or team creation, for all PEs to compare.
struct alignas(kCacheLineBytes) CollectiveRequest {
  std::uint64_t kind = 0;
  std::uint64_t bytes = 0;
  std::uint64_t alignment = 0;
  std::uint64_t offset = 0;

  friend bool operator==(const CollectiveRequest&, const CollectiveRequest&) = default;
};

// The most PEs of a job in which teams are made by an id.
inline constexpr std::uint32_t kMeetingPeCountMax = 4096;

// What a PE tells those with whom it makes a team by an id (meeting.hpp).
struct alignas(kCacheLineBytes) MeetingRecord {
  std::uint64_t round = 0;  // written last
  std::uint32_t index = 0;
  std::uint32_t pe = 0;
  std::array<std::uint64_t, 4> words{};
};

// The longest note of Collectives::exchange.
inline constexpr std::size_t kNoteBytesMax = 256;

inline constexpr std::size_t kTeamBytes = std::size_t{132} << 10U;
inline constexpr std::size_t kPublishBytes = std::size_t{64} << 10U;
// Scratch memory, by team: for the team of all PEs, where reductions between nodes benefit most
// from it; for the teams with the lowest numbers, which are taken first; for the others.
inline constexpr std::size_t kWorldScratchBytes = std::size_t{4} << 20U;
inline constexpr std::size_t kTeamScratchBytes = std::size_t{112} << 10U;
inline constexpr std::size_t kSmallScratchBytes = std::size_t{12} << 10U;
inline constexpr std::uint32_t kTeamScratchCount = 32;

// The data that a PE publishes to its node in one call: first the bytes, then the call's position.
// Short data is in the same cache line as the position.
struct alignas(kCacheLineBytes) Publication {
  static constexpr std::size_t kDataBytes = kPublishBytes - 16;

  std::uint64_t position = 0;
  alignas(16) std::array<std::byte, kDataBytes> data;
};

// Written by its PE, and read by the PEs of its node.
struct TeamControl {
  std::array<Publication, 2> published;  // of even and odd calls
  ControlWord ready;                     // the last call in which others may read this PE's `dest`
  ControlWord done;                      // the last call in which this PE has finished reading
  ControlWord released;                  // the last sync that this leader's node may leave
};

static_assert(sizeof(TeamControl) <= kTeamBytes);

union TeamSlot {
  TeamControl control;
  std::array<std::byte, kTeamBytes> bytes;
};

// Accessed by PEs of other nodes.
struct TeamArrivals {
  std::array<ControlWord, kRoundCountMax> syncs;  // by round: the number of arrivals of its sender
  ControlWord pieces;                             // the number of pieces that arrived, in all calls
  ControlWord results;                            // as above, for results of reductions
  alignas(kCacheLineBytes)
      std::array<std::byte, kNoteBytesMax> note;  // read by peers between two syncs
};

// The part of the control bytes that other nodes access: only this is registered with the NICs,
// which takes memory for every page of it, touched or not.
struct RemoteControl {
  ControlWord probe;          // target of writes that only open or test a connection; never read
  ControlWord meeting_round;  // the last round that a host has answered
  std::array<MeetingRecord, kMeetingPeCountMax>
      meeting_arrivals;  // by PE: written by it, read by the host
  std::array<MeetingRecord, kMeetingPeCountMax> meeting_answers;  // by index: written by the host
  std::array<TeamArrivals, kTeamCountMax> arrivals;               // by team
  std::array<std::byte, kWorldScratchBytes> world_scratch;
  std::array<std::array<std::byte, kTeamScratchBytes>, kTeamScratchCount> team_scratch;
  std::array<std::array<std::byte, kSmallScratchBytes>, kTeamCountMax - kTeamScratchCount>
      small_scratch;
};

inline constexpr std::size_t kHugePageBytes = std::size_t{2} << 20U;

// The layout of the control bytes of the heap. Pages of the first part take memory when they are
// touched.
struct HeapControl {
  WordBell doorbell;  // must be first: rma expects it at the start of the control bytes
  alignas(4096) std::array<TeamSlot, kTeamCountMax> teams;
  alignas(kHugePageBytes) RemoteControl remote;
};

// The bytes before the user's memory: a multiple of the huge page size, so that the heap itself
// starts on one.
inline constexpr std::uint64_t kControlBytes = std::uint64_t{28} << 20U;
static_assert(sizeof(HeapControl) <= kControlBytes);
inline constexpr std::uint64_t kNodeControlBytes = offsetof(HeapControl, remote);

}  // namespace weft::collectives
