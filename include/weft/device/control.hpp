// The control bytes at the start of each device heap: the words that Weft's own device code uses, one block
// for each team. Peers address them like any symmetric memory.
//
// No word is ever reset: counts only grow, so a late reader sees a larger number than it waits for, never a
// smaller one. A team number that is used again goes on counting where the block stands.
#ifndef WEFT_DEVICE_CONTROL_HPP
#define WEFT_DEVICE_CONTROL_HPP

#include <weft/device/state.hpp>

#include <cstddef>
#include <cstdint>

namespace weft::device {

// Teams up to this size, all mapped, meet by one store to each member.
inline constexpr std::uint32_t kFlatMembersMax = 128;
// log2 of the largest job.
inline constexpr std::uint32_t kRoundsMax = 24;
inline constexpr std::size_t kTeamControlBytes = std::size_t{1} << 20U;

// One to a sector, so that peers' stores do not meet.
struct alignas(32) Flag {
  std::uint64_t value;
};

// Data and the call that it belongs to, in one access of 16 bytes: whoever sees the epoch has the data.
struct alignas(16) Parcel {
  std::uint64_t data;
  std::uint64_t epoch;
};

// What the PE's blocks have done together: the upper half counts calls in which all have, so that any
// number of blocks is one step (grid.cuh).
struct alignas(128) Tally {
  std::uint64_t value;
};

// Of collectives in which members touch each other's memory (meeting.cuh). [i]: by member i.
struct Meeting {
  Tally entered;  // by this PE's own scope
  alignas(128) Flag ready[kFlatMembersMax];
  alignas(128) Flag halfway[kFlatMembersMax];
  alignas(128) Flag done[kFlatMembersMax];
};

// A word counts alike on all PEs because each kind of call that counts has words of its own.
enum MeetingKind : std::uint32_t {
  kMeetBlocks,         // thread, warp and block scope
  kMeetGrids,          // grid scope
  kMeetBlocksHalfway,  // the same, of calls in two steps
  kMeetGridsHalfway,
  kMeetingKinds,
};

// Parcels in one of the two buffers: 16 bytes for 8 of data.
inline constexpr std::uint32_t kExchangeParcels = 16384;
inline constexpr std::uint32_t kBroadcastParcels = 4096;
// Where data of reductions waits on teams with members that are not mapped.
inline constexpr std::size_t kInboxBytes = std::size_t{256} << 10U;

struct TeamControl {
  // By this PE alone: calls so far, of each kind.
  std::uint64_t sync_epoch;
  std::uint64_t exchange_epoch;
  std::uint64_t broadcast_epoch;
  std::uint64_t arrivals_expected;
  // By the blocks of this PE's grid.
  Tally gate;
  alignas(128) std::uint64_t gate_opened;
  // By member i, in flat meetings: the epoch that it has entered.
  alignas(128) Flag entered[kFlatMembersMax];
  // By the member that comes in this round of a dissemination: how often one has.
  alignas(128) Flag rounds[kRoundsMax];
  // By any member: signals behind data.
  alignas(128) Flag arrivals;
  // By member i: the last broadcast of which it needs no parcel any more.
  alignas(128) Flag broadcast_done[kFlatMembersMax];
  Meeting meetings[kMeetingKinds];
  // By members: [epoch & 1].
  alignas(1024) Parcel exchange[2][kExchangeParcels];
  alignas(1024) Parcel broadcast[2][kBroadcastParcels];
  alignas(1024) std::byte inbox[kInboxBytes];
};

static_assert(sizeof(TeamControl) <= kTeamControlBytes, "a team's block of the control bytes");

inline constexpr std::size_t kControlBytes = kTeamCountMax * kTeamControlBytes;

}  // namespace weft::device

#endif  // WEFT_DEVICE_CONTROL_HPP
