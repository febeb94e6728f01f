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
inline constexpr std::size_t kInboxBytes = std::size_t{768} << 10U;
inline constexpr std::size_t kTeamControlBytes = std::size_t{1} << 20U;

// One to a sector, so that peers' stores do not meet.
struct alignas(32) Flag {
  std::uint64_t value;
};

struct TeamControl {
  // By this PE alone.
  std::uint64_t sync_epoch;  // syncs entered so far
  std::uint64_t call_epoch;  // collectives with data entered so far
  std::uint64_t grid[14];    // counters of grid scope
  // By member i, in flat meetings: the epoch that it has entered.
  alignas(128) Flag entered[kFlatMembersMax];
  // By the member that comes in this round of a dissemination: how often one has.
  alignas(128) Flag rounds[kRoundsMax];
  // By members: whatever the collectives define.
  alignas(128) Flag arrived[4 * kFlatMembersMax];
  alignas(1024) std::byte inbox[kInboxBytes];
};

static_assert(sizeof(TeamControl) <= kTeamControlBytes, "a team's block of the control bytes");

inline constexpr std::size_t kControlBytes = kTeamCountMax * kTeamControlBytes;

}  // namespace weft::device

#endif  // WEFT_DEVICE_CONTROL_HPP
