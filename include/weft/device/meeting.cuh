// The frame of collectives in which members touch each other's memory: enter, work, leave. Between a
// member's entry and its leaving, all members may read its source and write its dest.
//
// Successive calls: what a PE does to another's memory in call e follows the other's entry into e, and the
// other enters when it has left all calls before, of whatever kind and scope. It leaves when all PEs are
// done with its memory and it with theirs. So no two calls overlap on any memory, and no `done` of call
// e + 1 can be added to a word before all of e are there.
// Grid scope: a block counts into every member's word, its own PE's too. So a block that leaves knows that
// all blocks of all PEs are done, and that all of its own PE have entered (what grid.cuh asks for).
#ifndef WEFT_DEVICE_MEETING_CUH
#define WEFT_DEVICE_MEETING_CUH

#include <weft/device/atomics.cuh>
#include <weft/device/copy.cuh>
#include <weft/device/grid.cuh>
#include <weft/device/team.cuh>

#include <cstdint>

namespace weft::device::detail {

// What it takes to reach member `index` from here; 0 for this PE itself, so that its own cache follows.
inline __device__ std::int64_t delta_of_member(const TeamState& team, std::uint32_t index) {
  return index == team.me ? 0 : delta_of(pe_of(team, index));
}

// The member `step` further on, so that not all PEs turn to the same one.
inline __device__ std::uint32_t member_after(const TeamState& team, std::uint32_t step) {
  const std::uint32_t index = team.me + step;
  return index < team.size ? index : index - team.size;
}

struct MeetingCall {
  Meeting* words;
  std::uint64_t epoch;
  OperationName operation;
};

template <typename Scope>
__device__ Meeting* meeting_of(TeamControl* control, bool with_halfway) {
  return &control->meetings[(with_halfway ? kMeetBlocksHalfway : kMeetBlocks) +
                            (kIsGrid<Scope> ? 1 : 0)];
}

// What follows the entry. Stores need no acquire: they are issued when the looks at the words have
// returned, and members' own accesses were complete before these were written.
enum class Access : bool { Stores, LoadsToo };

// This scope's number of the call; tells all members that it has entered.
template <typename Scope>
__device__ std::uint64_t announce(const TeamState& team, Meeting* words) {
  using Local = LocalOf<Scope>;
  Local::sync();
  const bool tells = Local::rank() < team.size && (!kIsGrid<Scope> || Grid::block() == 0);
  if (tells) {
    fence_release();  // SYNC meeting-ready: source and dest as the scope left them, for the members
  }
  std::uint64_t epoch = 0;
  if constexpr (kIsGrid<Scope>) {
    epoch = enter_by_grid(words->entered);
  } else {
    epoch = (load_relaxed(&words->entered.value) >> kTallyShift) + 1;
  }
  if (tells) {
    for (std::uint32_t k = Local::rank(); k < team.size; k += Local::size()) {
      const std::uint32_t i = member_after(team, k);
      store_relaxed(&moved(words, delta_of_member(team, i))->ready[team.me].value, epoch);
    }
  }
  return epoch;
}

// Returns when all members have entered; what they wrote to their sources before is seen.
template <typename Scope, Access kAccess = Access::LoadsToo>
__device__ MeetingCall enter(const TeamState& team, Meeting* words, OperationName operation) {
  using Local = LocalOf<Scope>;
  const std::uint64_t epoch = announce<Scope>(team, words);
  if (Local::rank() < team.size) {
    for (std::uint32_t i = Local::rank(); i < team.size; i += Local::size()) {
      await_at_least(&words->ready[i].value, epoch, operation, pe_of(team, i));
    }
    if constexpr (kAccess == Access::LoadsToo) {
      fence_acquire();  // SYNC meeting-ready: of all members
    }
  }
  Local::sync();
  return {words, epoch, operation};
}

// Tells all members through their `flags` that this scope's part is done, and waits for theirs.
template <typename Scope>
__device__ void meet_done(const TeamState& team,
                          const MeetingCall& call,
                          Flag (Meeting::*flags)[kFlatMembersMax]) {
  using Local = LocalOf<Scope>;
  Local::sync();
  if (Local::rank() < team.size) {
    fence_release();  // SYNC meeting-done: loads and stores of this block or scope, for the members
    for (std::uint32_t k = Local::rank(); k < team.size; k += Local::size()) {
      const std::uint32_t i = member_after(team, k);
      std::uint64_t* word = &(moved(call.words, delta_of_member(team, i))->*flags)[team.me].value;
      if constexpr (kIsGrid<Scope>) {
        add_relaxed(word, grid_step());
      } else {
        store_relaxed(word, whole(call.epoch));
      }
    }
    for (std::uint32_t i = Local::rank(); i < team.size; i += Local::size()) {
      await_at_least(&(call.words->*flags)[i].value, whole(call.epoch), call.operation,
                     pe_of(team, i));
    }
    fence_acquire();  // SYNC meeting-done: of all members
  }
  Local::sync();
}

template <typename Scope>
__device__ void leave(const TeamState& team, const MeetingCall& call) {
  meet_done<Scope>(team, call, &Meeting::done);
  if (!kIsGrid<Scope> && is_leader<Scope>()) {
    store_relaxed(&call.words->entered.value,
                  whole(call.epoch));  // read behind the next call's sync
  }
}

// ---- Who does what between the two

// This thread's crew for work on `parts` parts at once, and the part that it starts with: warps take parts
// in turn, so that the scope is on its way to all members from the start.
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
