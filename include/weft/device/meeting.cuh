// The frame of collectives in which members access each other's memory: enter, work, leave. Between
// a member's enter and its leave, all members may read its source and write its dest.
//
// Successive calls: what a PE does to another PE's memory in call e happens after that PE's entry
// into e. A PE enters only when it has left all earlier calls, of any kind and scope. It leaves
// when all PEs are done with its memory and it is done with theirs. So no two calls overlap on any
// memory, and no `done` of call e + 1 is added to a word before all of call e have arrived.
// Grid scope: a block counts into every member's word, including its own PE's. So a block that
// leaves knows that all blocks of all PEs are done, and that all blocks of its own PE have entered
// (as grid.cuh requires).
#ifndef WEFT_DEVICE_MEETING_CUH
#define WEFT_DEVICE_MEETING_CUH

#include <weft/device/atomics.cuh>
#include <weft/device/copy.cuh>
#include <weft/device/grid.cuh>
#include <weft/device/standard.hpp>
#include <weft/device/team.cuh>

namespace weft::device::detail {

// The offset from here to member `index`; 0 for this PE itself, so that its own cache stays
// coherent.
inline __device__ std::int64_t delta_of_member(const TeamState& team, std::uint32_t index) {
  return index == team.me ? 0 : delta_of(pe_of(team, index));
}

// The member `step` places further on, so that not all PEs start with the same member.
inline __device__ std::uint32_t member_after(const TeamState& team, std::uint32_t step) {
  const std::uint32_t index = team.me + step;
  return index < team.size ? index : index - team.size;
}

// The step at which `member` comes: member_after(team, steps_to(team, member)) == member.
inline __device__ std::uint32_t steps_to(const TeamState& team, std::uint32_t member) {
  const std::uint32_t behind = member + team.size - team.me;
  return behind < team.size ? behind : behind - team.size;
}

struct MeetingCall {
  Meeting* words;
  std::uint64_t epoch;
  OperationName operation;
};

template <typename Scope>
__device__ Meeting* meeting_of(TeamControl* control) {
  return &control->meetings[kIsGrid<Scope> ? kMeetGrids : kMeetBlocks];
}

// The accesses that follow the entry. Stores need no acquire: they are issued after the polls of
// the words have returned, and the members' own accesses were complete before these words were
// written.
enum class Access : bool { Stores, LoadsToo };

// Notifies all members that this scope has entered; returns this scope's number of the call.
template <typename Scope>
__device__ std::uint64_t announce(const TeamState& team, Meeting* words, OperationName operation) {
  using Local = LocalOf<Scope>;
  Local::sync();
  const bool tells = Local::rank() < team.size && (!kIsGrid<Scope> || Grid::block() == 0);
  if (tells) {
    fence_release();  // SYNC meeting-ready: source and dest as the scope left them, for the members
  }
  std::uint64_t epoch = 0;
  if constexpr (kIsGrid<Scope>) {
    epoch = enter_by_grid(words->entered, operation);
  } else {
    epoch = (load_relaxed(&words->entered.value) >> kTallyShift) + 1;
  }
  if (tells) {
    for (std::uint32_t k = Local::rank(); k < team.size; k += Local::size()) {
      const std::uint32_t i = member_after(team, k);
      store_relaxed(&moved(words, delta_of_member(team, i))->ready[team.me].value, whole(epoch));
    }
  }
  return epoch;
}

// Returns when all members have entered; their earlier writes to their sources are visible.
template <typename Scope, Access kAccess = Access::LoadsToo>
__device__ MeetingCall enter(const TeamState& team, Meeting* words, OperationName operation) {
  using Local = LocalOf<Scope>;
  const std::uint64_t epoch = announce<Scope>(team, words, operation);
  if (Local::rank() < team.size) {
    for (std::uint32_t i = Local::rank(); i < team.size; i += Local::size()) {
      await_at_least(&words->ready[i].value, whole(epoch), operation, pe_of(team, i));
    }
    if constexpr (kAccess == Access::LoadsToo) {
      fence_acquire();  // SYNC meeting-ready: of all members
    }
  }
  Local::sync();
  return {words, epoch, operation};
}

// Notifies all members that this scope's part is done, and waits for theirs.
template <typename Scope>
__device__ void leave(const TeamState& team, const MeetingCall& call) {
  using Local = LocalOf<Scope>;
  Local::sync();
  if (Local::rank() < team.size) {
    fence_release();  // SYNC meeting-done: loads and stores of this block or scope, for the members
    for (std::uint32_t k = Local::rank(); k < team.size; k += Local::size()) {
      const std::uint32_t i = member_after(team, k);
      std::uint64_t* word = &moved(call.words, delta_of_member(team, i))->done[team.me].value;
      if constexpr (kIsGrid<Scope>) {
        add_relaxed(word, grid_step());
      } else {
        store_relaxed(word, whole(call.epoch));
      }
    }
    for (std::uint32_t i = Local::rank(); i < team.size; i += Local::size()) {
      await_at_least(&call.words->done[i].value, whole(call.epoch), call.operation, pe_of(team, i));
    }
    fence_acquire();  // SYNC meeting-done: of all members
  }
  Local::sync();
  if (!kIsGrid<Scope> && is_leader<Scope>()) {
    store_relaxed(&call.words->entered.value,
                  whole(call.epoch));  // read after the next call's sync
  }
}

// ---- Work distribution between enter and leave

// This thread's crew for work on `parts` parts at once, and the first part of that crew. Warps take
// parts in turn, so that the scope accesses all members from the start.
struct Share {
  std::uint32_t part;
  std::uint32_t part_step;
  Crew crew;
};

template <typename Scope>
__device__ Share share_of(std::uint32_t parts) {
  using Local = LocalOf<Scope>;
  constexpr std::uint32_t kWarp = 32;
  if (Local::size() % kWarp != 0) {
    if constexpr (kIsGrid<Scope>) {
      return {0, 1, {Grid::rank(), Grid::size()}};
    }
    return {0, 1, {Local::rank(), Local::size()}};
  }
  const std::uint32_t blocks = kIsGrid<Scope> ? Grid::block_count() : 1;
  const std::uint32_t block = kIsGrid<Scope> ? Grid::block() : 0;
  const std::uint32_t warps = Local::size() / kWarp * blocks;
  const std::uint32_t warp = block + Local::rank() / kWarp * blocks;
  const std::uint32_t lane = Local::rank() % kWarp;
  if (warps < parts) {
    return {warp, warps, {lane, kWarp}};
  }
  const std::uint32_t part = warp % parts;
  const std::uint32_t crew_warps = (warps - part + parts - 1) / parts;
  return {part, parts, {warp / parts * kWarp + lane, crew_warps * kWarp}};
}

}  // namespace weft::device::detail

#endif  // WEFT_DEVICE_MEETING_CUH
