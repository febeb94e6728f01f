// What the blocks of one grid need to make a call together. The blocks are co-resident
// (launch_collective), all make the same calls in the same order, and at most one grid of a PE is
// in a call of a team at a time.
//
// No block leaves a call before all have entered it. So no block can be a call ahead, and a block's
// own step of a tally tells which call this is.
#ifndef WEFT_DEVICE_GRID_CUH
#define WEFT_DEVICE_GRID_CUH

#include <weft/device/access.cuh>
#include <weft/device/control.hpp>
#include <weft/device/scope.cuh>
#include <weft/device/standard.hpp>
#include <weft/device/wait.cuh>

#include <cooperative_groups.h>

namespace weft::device::detail {

template <typename Scope>
inline constexpr bool kIsGrid = std::is_base_of<Grid, Scope>::value;

template <typename Scope>
inline constexpr bool kIsWholeKernel = std::is_same<Scope, WholeKernel>::value;

// The largest scope whose threads can synchronize directly.
template <typename Scope>
using LocalOf = std::conditional_t<kIsGrid<Scope>, Block, Scope>;

// The tally of a call that all blocks have made.
inline __device__ std::uint64_t whole(std::uint64_t epoch) {
  return epoch << kTallyShift;
}

// Whether a count is at `value` or beyond it, also where it has wrapped since: the two are never
// 2^63 apart.
inline __device__ bool has_reached(std::uint64_t count, std::uint64_t value) {
  return static_cast<std::int64_t>(count - value) >= 0;
}

// This block's step of a tally. The steps of all blocks add up to one whole, for up to 2^16 blocks:
// co-resident ones are at most 32 for each multiprocessor, of which GPUs have some hundreds.
inline __device__ std::uint64_t grid_step() {
  return Grid::block() == 0 ? whole(1) - (Grid::block_count() - 1) : 1;
}

// The step of a tally that this scope's leader adds, or each block's where the scope is a grid.
template <typename Scope>
__device__ std::uint64_t tally_step() {
  return kIsGrid<Scope> ? grid_step() : whole(1);
}

// The thread that adds the block's step. It is not in the leader's warp, which waits for fences
// meanwhile.
inline __device__ bool is_teller() {
  return Block::rank() == Block::size() - 1;
}

// Blocks of an ordinary launch may wait for blocks that have not begun.
inline __device__ void require_cooperative(OperationName operation) {
  if (Grid::block_count() > 1 && !cooperative_groups::this_grid().is_valid()) {
    fail({FailureKind::NotCooperative, operation, -1, nullptr, Grid::block_count()});
  }
}

// Enters the next call that `tally` counts; returns its number to all threads of the block.
inline __device__ std::uint64_t enter_by_grid(Tally& tally, OperationName operation) {
  __shared__ std::uint64_t epoch;
  if (is_teller()) {
    require_cooperative(operation);
    using Word = unsigned long long;
    const std::uint64_t before =
        atomicAdd(reinterpret_cast<Word*>(&tally.value), Word{grid_step()});
    epoch = (before >> kTallyShift) + 1;
  }
  Block::sync();
  return epoch;  // the next call overwrites it only after further syncs of the block
}

inline __device__ void await_at_least(const std::uint64_t* word,
                                      std::uint64_t value,
                                      OperationName operation,
                                      int pe) {
  spin_until({FailureKind::None, operation, pe, word, value},
             [&] { return has_reached(load_relaxed(word), value); });
}

// The number of the next call that a tally counts; the same in all threads until the last block
// counts itself.
inline __device__ std::uint64_t next_call(const Tally& tally) {
  return (load_relaxed(&tally.value) >> kTallyShift) + 1;
}

// This scope, or this block of a grid, has made its part of call `number`. All its threads are past
// it.
template <typename Scope>
__device__ void count_call(Tally& tally, std::uint64_t number) {
  if constexpr (kIsGrid<Scope>) {
    if (is_teller()) {
      using Word = unsigned long long;
      atomicAdd(reinterpret_cast<Word*>(&tally.value), Word{grid_step()});
    }
  } else if (is_leader<Scope>()) {
    store_relaxed(&tally.value, whole(number));
  }
}

// Every block waits for all others; what they did before is visible to all threads of this GPU
// after.
inline __device__ void meet_in_grid(TeamControl* control, OperationName operation) {
  Block::sync();
  if (is_teller()) {
    fence_release_on_gpu();  // SYNC grid-meeting: what this block did, for the others
  }
  const std::uint64_t epoch = enter_by_grid(control->gate, operation);
  if (is_leader<Block>()) {
    await_at_least(&control->gate.value, whole(epoch), operation, static_cast<int>(state().pe));
    fence_acquire_on_gpu();  // SYNC grid-meeting: of all blocks
  }
  Block::sync();
}

// Runs `work()` by the scope, of which each block of a grid does a part. The blocks meet after it:
// each then sees all parts, and none begins the next call before all have left this one.
template <typename Scope, typename Work>
__device__ void by_all(TeamControl* control, OperationName operation, Work&& work) {
  if constexpr (std::is_same<Scope, Grid>::value) {
    if (is_teller()) {
      require_cooperative(operation);  // before it waits for peers
    }
    work();
    meet_in_grid(control, operation);
  } else {
    work();
  }
}

// All blocks enter, the first one does `work`, all return. So the grid is synchronized before and
// after it.
template <typename Work>
__device__ void by_first_block(TeamControl* control, OperationName operation, Work&& work) {
  Block::sync();
  if (is_teller()) {
    fence_release_on_gpu();  // SYNC grid-gate: what this block did, for the first block
  }
  const std::uint64_t epoch = enter_by_grid(control->gate, operation);
  const auto me = static_cast<int>(state().pe);
  if (Grid::block() == 0) {
    if (is_leader<Block>()) {
      await_at_least(&control->gate.value, whole(epoch), operation, me);
      fence_acquire_on_gpu();  // SYNC grid-gate: of all blocks
    }
    Block::sync();
    work();
    Block::sync();
    if (is_leader<Block>()) {
      fence_release_on_gpu();  // SYNC grid-opened: the work, for the other blocks
      store_relaxed(&control->gate_opened, whole(epoch));
    }
  } else if (is_leader<Block>()) {
    await_at_least(&control->gate_opened, whole(epoch), operation, me);
    fence_acquire_on_gpu();  // SYNC grid-opened: pairs with the first block's release
  }
  Block::sync();
}

}  // namespace weft::device::detail

#endif  // WEFT_DEVICE_GRID_CUH
