// sync and barrier of a team, by a thread, a warp, a block or a grid of each member. A PE has at
// most one of them in progress per team, and all members make the same calls in the same order.
//
// Order: if peers are mapped, what the calling scope did before sync is visible to every member
// that returns from it. barrier is quiet followed by sync, and so guarantees it for all PEs. With
// Order::None sync only tells that all are there, and orders nothing; it saves the fence, most of
// its time.
#ifndef WEFT_DEVICE_SYNC_CUH
#define WEFT_DEVICE_SYNC_CUH

#include <weft/device/grid.cuh>
#include <weft/device/order.cuh>
#include <weft/device/signal.cuh>
#include <weft/device/standard.hpp>
#include <weft/device/team.cuh>
#include <weft/device/wait.cuh>

namespace weft::device {

enum class Order : bool { None, AcquireRelease };

namespace detail {

// One store to every member, one poll of every own flag: no step depends on another.
template <typename Scope, Order kOrder>
__device__ void meet_flat(const TeamState& team, TeamControl* control, std::uint64_t epoch) {
  if (Scope::rank() >= team.size) {
    return;
  }
  if constexpr (kOrder == Order::AcquireRelease) {
    fence_release();  // SYNC device-sync: what the scope did, for members that see the epoch
  }
  for (std::uint32_t i = Scope::rank(); i < team.size; i += Scope::size()) {
    if (i != team.me) {
      const std::int64_t delta = delta_of(pe_of(team, i));
      store_relaxed(&moved(control, delta)->entered[team.me].value, epoch);
    }
  }
  for (std::uint32_t i = Scope::rank(); i < team.size; i += Scope::size()) {
    if (i == team.me) {
      continue;
    }
    const std::uint64_t* flag = &control->entered[i].value;
    await_at_least(flag, epoch, OperationName::Sync, pe_of(team, i));
  }
  if constexpr (kOrder == Order::AcquireRelease) {
    fence_acquire();  // SYNC device-sync: pairs with the release above
  }
}

// Dissemination barrier: log2(size) rounds, in each a signal to the member 2^round further on. By
// one thread.
inline __device__ void meet_by_rounds(const TeamState& team,
                                      TeamControl* control,
                                      std::uint64_t epoch) {
  std::uint32_t round = 0;
  for (std::uint32_t distance = 1; distance < team.size; distance *= 2, ++round) {
    const int to = pe_of(team, (team.me + distance) % team.size);
    const int from = pe_of(team, (team.me + team.size - distance) % team.size);
    std::uint64_t* flag = &control->rounds[round].value;
    fence();
    signal({flag, 1, SignalOp::Add}, to);
    await_at_least(flag, epoch, OperationName::Sync, from);
    fence_acquire();  // SYNC device-sync: pairs with the sender's fence above
  }
}

// For scopes other than a grid.
template <typename Scope, Order kOrder>
__device__ void sync_members(const TeamState& members, TeamControl* control) {
  Scope::sync();
  const std::uint64_t epoch = load_relaxed(&control->sync_epoch) + 1;
  if (members.all_mapped != 0 && members.size <= kFlatMembersMax) {
    detail::meet_flat<Scope, kOrder>(members, control, epoch);
  } else if (is_leader<Scope>()) {
    detail::meet_by_rounds(members, control, epoch);
  }
  Scope::sync();
  if (is_leader<Scope>()) {
    store_relaxed(&control->sync_epoch, epoch);  // read after the next call's sync
  }
}

}  // namespace detail

// Returns when all members have entered, with all their threads of the scope.
template <typename Scope = Thread, Order kOrder = Order::AcquireRelease>
__device__ void sync(Team team) {
  const TeamState& members = detail::members_of(team);
  TeamControl* control = detail::control_of(members);
  if constexpr (detail::kIsGrid<Scope>) {
    detail::by_first_block(control, OperationName::Sync,
                           [&] { detail::sync_members<Block, kOrder>(members, control); });
  } else {
    detail::sync_members<Scope, kOrder>(members, control);
  }
}

// Returns when all blocks of this PE's grid have entered; no other PE takes part. Uses the control
// words of `team`.
inline __device__ void grid_sync(Team team) {
  detail::by_first_block(detail::control_of(detail::members_of(team)), OperationName::Sync, [] {});
}

// quiet, then sync.
template <typename Scope = Thread>
__device__ void barrier(Team team) {
  if constexpr (detail::kIsGrid<Scope>) {
    detail::by_first_block(detail::control_of(detail::members_of(team)), OperationName::Barrier,
                           [&] { barrier<Block>(team); });
  } else {
    Scope::sync();
    if (state().ring_count != 0 && is_leader<Scope>()) {
      quiet();
    }
    sync<Scope>(team);  // if peers are mapped, its release does all that quiet would do
  }
}

template <typename Scope = Thread>
__device__ void sync_all() {
  sync<Scope>(kWorld);
}

template <typename Scope = Thread>
__device__ void barrier_all() {
  barrier<Scope>(kWorld);
}

}  // namespace weft::device

#endif  // WEFT_DEVICE_SYNC_CUH
