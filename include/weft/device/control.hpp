// The control bytes at the start of each device heap: the words and buffers that Weft's own device
// code uses, one block per team. Peers address them like any symmetric memory.
//
// A team's number tells how large its buffers are. The first 64 have whole ones, which hold what
// parcels are faster for; all later ones have narrow ones, so that many teams cost little memory:
// larger calls use the non-parcel path.
//
// No word is ever reset. Counts only grow, so a late reader sees a later number than it waits for,
// never an earlier one. When a team number is reused, counting continues from the block's current
// values.
//
// Counts have 64 bits and wrap: whether a call has been reached is decided by the distance to it
// (grid.cuh `has_reached`). Parcels alone compare for equality: a stale one could be taken for one
// of this call only after exactly 2^48 calls, in which no other was stored in its place: years of
// nothing but calls of a team.
#ifndef WEFT_DEVICE_CONTROL_HPP
#define WEFT_DEVICE_CONTROL_HPP

#include <weft/device/standard.hpp>
#include <weft/device/state.hpp>

namespace weft::device {

// Teams of up to this size, all mapped, synchronize by one store to each member.
inline constexpr std::uint32_t kFlatMembersMax = 128;
// log2 of the largest job.
inline constexpr std::uint32_t kRoundsMax = 24;

// One per sector, so that stores of different peers do not conflict.
struct alignas(32) Flag {
  std::uint64_t value;
};

// Data and the number of its call, in one access of 16 bytes: a reader that sees the epoch has the
// data.
struct alignas(16) Parcel {
  std::uint64_t data;
  std::uint64_t epoch;
};

// A counter of a PE's blocks. The upper 48 bits count calls that all blocks have made; the lower 16
// are for the steps of the blocks of a grid, which add up to one call (grid.cuh). Calls of smaller
// scopes make the whole step at once.
inline constexpr std::uint32_t kTallyShift = 16;

struct alignas(128) Tally {
  std::uint64_t value;
};

// Signals that follow data. A member that is ahead may send those of its next call, or of the next
// part of a call, before another has sent those of this one: a sync stands between, or the next
// ones are counted apart.
struct alignas(128) Arrivals {
  Flag signals;            // added to by any member
  std::uint64_t expected;  // written by this PE only: how many its calls so far wait for
};

// For collectives in which members access each other's memory (meeting.cuh). [i]: written by member
// i. All are tallies.
struct Meeting {
  Tally entered;  // by this PE's own scope
  alignas(128) Flag ready[kFlatMembersMax];
  alignas(128) Flag done[kFlatMembersMax];
};

// The words count alike on all PEs because each kind of call that counts has separate words.
enum MeetingKind : std::uint32_t {
  kMeetBlocks,  // thread, warp and block scope
  kMeetGrids,   // grid scope
  kMeetingKinds,
};

// Parcels in one of the two buffers of exchanges: 16 bytes for 8 of data.
inline constexpr std::uint32_t kExchangeParcels = 16384;
inline constexpr std::uint32_t kNarrowParcels = 1024;
// The teams with the first numbers (the world, the node, and the first that are made) have larger
// buffers besides.
inline constexpr std::uint32_t kWideTeams = 8;
inline constexpr std::uint32_t kWideParcels = 131072;

// In a team's buffers for `parcels` of exchanges.
WEFT_HOST_DEVICE constexpr std::uint32_t broadcast_parcels_of(std::uint32_t parcels) {
  return parcels / 4;
}

// The words of a team. Its buffers follow them (TeamBuffers).
struct alignas(1024) TeamControl {
  // Written by this PE only: the number of calls so far, per kind.
  std::uint64_t sync_epoch;
  Tally exchanges;
  Tally broadcasts;
  // Written by the blocks of this PE's grid.
  Tally gate;
  alignas(128) std::uint64_t gate_opened;  // the tally of the last call whose work is done
  // Written by member i, in flat meetings: the epoch that it has entered.
  alignas(128) Flag entered[kFlatMembersMax];
  // Written by the member that signals in this round of a dissemination barrier: the number of
  // signals so far.
  alignas(128) Flag rounds[kRoundsMax];
  Arrivals arrivals;
  Arrivals uneven_arrivals;  // of alltoallv's blocks, which follow its counts without a sync
  // Added to by the scope of member i: a tally of the broadcasts whose parcels it no longer needs.
  alignas(128) Flag broadcast_done[kFlatMembersMax];
  Meeting meetings[kMeetingKinds];
};

// The buffers of a team, for `parcels` of exchanges in each of two. Written by members.
struct TeamBuffers {
  std::byte* begin;
  std::uint32_t parcels;

  // [epoch & 1].
  WEFT_HOST_DEVICE Parcel* exchange(std::uint64_t epoch) const {
    return reinterpret_cast<Parcel*>(begin) + (epoch & 1U) * parcels;
  }

  WEFT_HOST_DEVICE Parcel* broadcast(std::uint64_t epoch) const {
    return exchange(0) + 2 * std::size_t{parcels} + (epoch & 1U) * broadcast_parcels_of(parcels);
  }

  // Holds incoming data of reductions on teams with members that are not mapped.
  WEFT_HOST_DEVICE std::byte* scratch() const {
    return reinterpret_cast<std::byte*>(broadcast(0) +
                                        2 * std::size_t{broadcast_parcels_of(parcels)});
  }

  WEFT_HOST_DEVICE std::size_t scratch_bytes() const { return scratch_bytes_of(parcels); }

  static WEFT_HOST_DEVICE constexpr std::size_t scratch_bytes_of(std::uint32_t parcels) {
    return std::size_t{parcels} * sizeof(Parcel);
  }

  static WEFT_HOST_DEVICE constexpr std::size_t bytes_of(std::uint32_t parcels) {
    return 2 * (std::size_t{parcels} + broadcast_parcels_of(parcels)) * sizeof(Parcel) +
           scratch_bytes_of(parcels);
  }
};

// Written by members: [epoch & 1].
struct WideBuffers {
  alignas(1024) Parcel exchange[2][kWideParcels];
  alignas(1024) Parcel broadcast[2][kWideParcels];
};

// Where a team's control bytes are, and how many.
struct ControlPlace {
  std::size_t offset;
  std::size_t bytes;
  std::uint32_t parcels;
};

inline constexpr std::uint32_t kWholeTeams = 64;
inline constexpr std::size_t kWholeBytes = std::size_t{1} << 20U;
inline constexpr std::size_t kNarrowBytes = std::size_t{128} << 10U;
static_assert(sizeof(TeamControl) + TeamBuffers::bytes_of(kExchangeParcels) <= kWholeBytes,
              "the block of a team");
static_assert(sizeof(TeamControl) + TeamBuffers::bytes_of(kNarrowParcels) <= kNarrowBytes,
              "the block of a later team");

inline constexpr std::size_t kWideOffset = kWholeTeams * kWholeBytes;
inline constexpr std::size_t kNarrowOffset = kWideOffset + kWideTeams * sizeof(WideBuffers);
// Whole pages of a GPU, so that the user's memory begins on one.
inline constexpr std::size_t kControlPage = std::size_t{2} << 20U;
inline constexpr std::size_t kControlBytes =
    (kNarrowOffset + (kTeamCountMax - kWholeTeams) * kNarrowBytes + kControlPage - 1) /
    kControlPage * kControlPage;

WEFT_HOST_DEVICE constexpr ControlPlace control_place_of(std::uint32_t team) {
  if (team < kWholeTeams) {
    return {team * kWholeBytes, kWholeBytes, kExchangeParcels};
  }
  return {kNarrowOffset + (team - kWholeTeams) * kNarrowBytes, kNarrowBytes, kNarrowParcels};
}

}  // namespace weft::device

#endif  // WEFT_DEVICE_CONTROL_HPP
