// alltoall and fcollect: each member has a block for every member, in team order. For fcollect it
// is the same block for all.
//
// Algorithm by size. Small: parcels (low_latency.cuh). Larger: every member stores into the dest of
// all others at once, between entering and leaving (meeting.cuh). Put with signal if a member is
// not mapped.
#ifndef WEFT_DEVICE_EXCHANGE_CUH
#define WEFT_DEVICE_EXCHANGE_CUH

#include <weft/device/by_signals.cuh>
#include <weft/device/low_latency.cuh>
#include <weft/device/meeting.cuh>
#include <weft/device/standard.hpp>

namespace weft::device {

namespace detail {

inline __device__ bool is_flat(const TeamState& team) {
  return team.all_mapped != 0 && team.size <= kFlatMembersMax;
}

// Runs `work()` by the scope, or by the first block of a grid.
template <typename Scope, typename Work>
__device__ void by_local(TeamControl* control, OperationName operation, Work&& work) {
  if constexpr (kIsWholeKernel<Scope>) {
    if (Grid::block() == 0) {
      work();
    }
  } else if constexpr (kIsGrid<Scope>) {
    by_first_block(control, operation, work);
  } else {
    work();
  }
}

template <typename Scope>
__device__ void exchange_by_stores(const TeamState& team,
                                   TeamControl* control,
                                   const Blocks& blocks,
                                   OperationName operation) {
  const MeetingCall call =
      enter<Scope, Access::Stores>(team, meeting_of<Scope>(control), operation);
  const Share share = share_of<Scope>(team.size);
  for (std::uint32_t k = share.part; k < team.size; k += share.part_step) {
    const std::uint32_t i = member_after(team, k);
    copy_by_crew(moved(blocks.dest, delta_of_member(team, i)) + team.me * blocks.bytes,
                 blocks.source + i * blocks.source_stride, blocks.bytes, share.crew);
  }
  leave<Scope>(team, call);
}

template <typename Scope>
__device__ void exchange(Team team, const Blocks& blocks, OperationName operation) {
  const TeamState& members = members_of(team);
  check(operation, blocks.dest, blocks.bytes * members.size, pe());
  if (blocks.bytes == 0) {
    return;
  }
  TeamControl* control = control_of(members);
  if (!is_flat(members)) {
    by_local<Scope>(control, operation,
                    [&] { exchange_by_signals<LocalOf<Scope>>(team, control, blocks, operation); });
  } else if (is_low_latency<Scope>(members, blocks.bytes)) {
    by_all<Scope>(control, operation,
                  [&] { exchange_parcels<Scope>(members, control, blocks, operation); });
  } else {
    exchange_by_stores<Scope>(members, control, blocks, operation);
  }
}

}  // namespace detail

// Block k of `source` is copied to block `me` of `dest` on member k; blocks have `count_per_pe`
// elements.
template <typename Scope = Block, typename T>
__device__ void alltoall(Team team, T* dest, const T* source, std::size_t count_per_pe) {
  static_assert(std::is_trivially_copyable<T>::value, "PEs exchange bytes");
  const std::size_t bytes = count_per_pe * sizeof(T);
  detail::exchange<Scope>(team,
                          {reinterpret_cast<std::byte*>(dest),
                           reinterpret_cast<const std::byte*>(source), bytes, bytes},
                          OperationName::Alltoall);
}

// `count` elements of each member, in team order, are copied to `dest` on all members.
template <typename Scope = Block, typename T>
__device__ void fcollect(Team team, T* dest, const T* source, std::size_t count) {
  static_assert(std::is_trivially_copyable<T>::value, "PEs exchange bytes");
  const std::size_t bytes = count * sizeof(T);
  detail::exchange<Scope>(
      team,
      {reinterpret_cast<std::byte*>(dest), reinterpret_cast<const std::byte*>(source), bytes, 0},
      OperationName::Fcollect);
}

}  // namespace weft::device

#endif  // WEFT_DEVICE_EXCHANGE_CUH
