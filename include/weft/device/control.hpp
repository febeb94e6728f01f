// The control bytes at the start of each device heap: the words that Weft's own device code uses, one block
// per team. Peers address them like any symmetric memory.
//
// No word is ever reset. Counts only grow, so a late reader sees a larger number than it waits for, never a
// smaller one. When a team number is reused, counting continues from the block's current values.
#ifndef WEFT_DEVICE_CONTROL_HPP
#define WEFT_DEVICE_CONTROL_HPP

#include <weft/device/standard.hpp>
#include <weft/device/state.hpp>

namespace weft::device {

// Teams of up to this size, all mapped, synchronize by one store to each member.
inline constexpr std::uint32_t kFlatMembersMax = 128;
// log2 of the largest job.
inline constexpr std::uint32_t kRoundsMax = 24;
inline constexpr std::size_t kTeamControlBytes = std::size_t{1} << 20U;

// One per sector, so that stores of different peers do not conflict.
struct alignas(32) Flag {
  std::uint64_t value;
};

// Data and the number of its call, in one access of 16 bytes: a reader that sees the epoch has the data.
struct alignas(16) Parcel {
  std::uint64_t data;
  std::uint64_t epoch;
};

// A counter of a PE's blocks. The upper half counts calls that all blocks have made, so that any number of
// blocks adds up to one step (grid.cuh). Calls of smaller scopes make the whole step at once.
struct alignas(128) Tally {
  std::uint64_t value;
};

// For collectives in which members access each other's memory (meeting.cuh). [i]: written by member i.
struct Meeting {
  Tally entered;  // by this PE's own scope
  alignas(128) Flag ready[kFlatMembersMax];
  alignas(128) Flag halfway[kFlatMembersMax];
  alignas(128) Flag done[kFlatMembersMax];
};

// The words count alike on all PEs because each kind of call that counts has separate words.
enum MeetingKind : std::uint32_t {
  kMeetBlocks,         // thread, warp and block scope
  kMeetGrids,          // grid scope
  kMeetBlocksHalfway,  // as above, for calls in two steps
  kMeetGridsHalfway,
  kMeetingKinds,
};

// Parcels in one of the two buffers: 16 bytes for 8 of data.
inline constexpr std::uint32_t kExchangeParcels = 16384;
inline constexpr std::uint32_t kBroadcastParcels = 4096;
// The teams with the first numbers (the world, the node, and the first that are made) have larger buffers besides.
inline constexpr std::uint32_t kWideTeams = 8;
inline constexpr std::uint32_t kWideParcels = 65536;
// Holds incoming data of reductions on teams with members that are not mapped.
inline constexpr std::size_t kScratchBytes = std::size_t{256} << 10U;

struct TeamControl {
  // Written by this PE only: the number of calls so far, per kind.
  std::uint64_t sync_epoch;
  std::uint64_t arrivals_expected;
  Tally exchanges;
  Tally broadcasts;
  // Written by the blocks of this PE's grid.
  Tally gate;
  alignas(128) std::uint64_t gate_opened;
  // Written by member i, in flat meetings: the epoch that it has entered.
  alignas(128) Flag entered[kFlatMembersMax];
  // Written by the member that signals in this round of a dissemination barrier: the number of signals so far.
  alignas(128) Flag rounds[kRoundsMax];
  // Written by any member: signals that follow data.
  alignas(128) Flag arrivals;
  // Added to by the scope of member i: a tally of the broadcasts whose parcels it no longer needs.
  alignas(128) Flag broadcast_done[kFlatMembersMax];
  Meeting meetings[kMeetingKinds];
  // Written by members: [epoch & 1].
  alignas(1024) Parcel exchange[2][kExchangeParcels];
  alignas(1024) Parcel broadcast[2][kBroadcastParcels];
  alignas(1024) std::byte scratch[kScratchBytes];
};

static_assert(sizeof(TeamControl) <= kTeamControlBytes, "a team's block of the control bytes");

// Written by members: [epoch & 1].
struct WideBuffers {
  alignas(1024) Parcel exchange[2][kWideParcels];
  alignas(1024) Parcel broadcast[2][kWideParcels];
};

inline constexpr std::size_t kWideOffset = kTeamCountMax * kTeamControlBytes;
inline constexpr std::size_t kControlBytes = kWideOffset + kWideTeams * sizeof(WideBuffers);

}  // namespace weft::device

#endif  // WEFT_DEVICE_CONTROL_HPP
