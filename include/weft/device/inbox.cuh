// Small operations from other nodes (puts, signals, atomics) stay in the inbox until a thread of this GPU
// applies them: a thread that waits, or a kernel that the proxy starts if no thread waits. Only threads of this
// GPU access the words, so all updates are atomic with its own atomics.
#ifndef WEFT_DEVICE_INBOX_CUH
#define WEFT_DEVICE_INBOX_CUH

#include <weft/device/copy.cuh>
#include <weft/device/module.cuh>
#include <weft/device/ring_memory.cuh>
#include <weft/device/word.cuh>

#include <cstddef>
#include <cstdint>

namespace weft::device::detail {

template <std::size_t kBytes>
__device__ std::uint64_t update_word(const Command& command) {
  using Word = CudaWord<kBytes>;
  return update(reinterpret_cast<Word*>(command.word), command.op,
                static_cast<Word>(command.operand), static_cast<Word>(command.compare));
}

// The threads of a warp that apply commands together, in lane order; this thread is number `rank` of `count`.
struct Lanes {
  unsigned mask;
  std::uint32_t rank;
  std::uint32_t count;

  __device__ bool is_first() const { return rank == 0; }

  template <typename T>
  __device__ T from_first(T value) const {
    return __shfl_sync(mask, value, __ffs(static_cast<int>(mask)) - 1);
  }

  // The number of consecutive threads, from number 0, that say yes.
  __device__ std::uint32_t leading(bool yes) const {
    const unsigned no = mask & ~__ballot_sync(mask, yes);
    const unsigned before_first_no = (no & (0U - no)) - 1;  // all if there is none
    return static_cast<std::uint32_t>(__popc(mask & before_first_no));
  }

  __device__ void sync() const { __syncwarp(mask); }
};

// The converged lanes that called this together.
inline __device__ Lanes lanes_here() {
  const unsigned mask = __activemask();
  const unsigned before = mask & ((1U << Warp::rank()) - 1);
  return {mask, static_cast<std::uint32_t>(__popc(before)),
          static_cast<std::uint32_t>(__popc(mask))};
}

// A whole warp.
inline __device__ Lanes warp_lanes() {
  return {~0U, Warp::rank(), 32};
}

inline __device__ std::uint64_t update_word(const Command& command) {
  if (command.kind == CommandKind::Put || command.kind == CommandKind::Nop) {
    return 0;
  }
  return command.element_bytes == 8 ? update_word<8>(command) : update_word<4>(command);
}

// Applies the next commands, one per lane; returns their number. Data first, then one fence for all, then the
// words. Commands between two fences of their sender may become visible in any order, but none of their words
// becomes visible before its own data.
inline __device__ std::uint32_t apply_together(std::uint64_t next, const Lanes& lanes) {
  RingConsumer<GpuMemory> inbox(state().inbox);
  Command command;
  const bool is_there = inbox.peek(next + lanes.rank, command);
  const bool may_join = lanes.is_first() || (command.flags & kFenceBefore) == 0;
  const std::uint32_t count = lanes.leading(is_there && may_join);
  const bool is_mine = lanes.rank < count;
  if (lanes.is_first() && is_there && (command.flags & kFenceBefore) != 0) {
    // SYNC device-signal (pairs with include/weft/device/wait.cuh): earlier words, before later data.
    fence_release();
  }
  lanes.sync();
  if (is_mine && command.bytes != 0) {
    copy_payload(reinterpret_cast<void*>(command.dest), inbox.payload(next + lanes.rank),
                 command.bytes);
  }
  lanes.sync();
  if (lanes.is_first() && count != 0) {
    // SYNC device-signal (pairs with include/weft/device/wait.cuh): the data, and what was applied earlier.
    fence_release();
  }
  lanes.sync();
  if (is_mine) {
    const std::uint64_t old = update_word(command);
    if ((command.flags & kReplyWanted) != 0) {
      inbox.reply(next + lanes.rank,
                  old);  // the proxy reuses a slot only after it has read the reply
    }
  }
  lanes.sync();
  return count;
}

// The most commands applied in a row, so that the applying thread also makes progress with its own work.
inline constexpr std::uint32_t kApplyMax = 128;

// Applies the commands in the inbox, unless other threads already do. No thread ever waits for the lock, and only its
// owner polls the inbox: see RingProducer::look_at_completed.
inline __device__ std::uint32_t drain_inbox(const Lanes& lanes) {
  const RingView& ring = state().inbox;
  const bool is_locked = lanes.is_first() && GpuMemory::try_lock(ring.lock);
  if (lanes.from_first(is_locked ? 1 : 0) == 0) {
    return 0;
  }
  const std::uint64_t first = GpuMemory::load_near(ring.next);  // guarded by the lock
  std::uint64_t next = first;
  std::uint32_t count = lanes.count;
  while (count == lanes.count && next - first < kApplyMax) {
    count = apply_together(next, lanes);
    next += count;
  }
  if (lanes.is_first()) {
    if (next != first) {
      GpuMemory::store_near(ring.next, next);
      RingConsumer<GpuMemory>(ring).release_below(next);
    }
    GpuMemory::unlock(ring.lock);
  }
  lanes.sync();
  return static_cast<std::uint32_t>(next - first);
}

// For threads that wait independently; those of a warp that wait at the same time apply together.
static __device__ __noinline__ void drain_together() {
  drain_inbox(lanes_here());
}

static __device__ __noinline__ void drain_by_warp() {
  drain_inbox(warp_lanes());
}

// Called by every loop in which a thread waits.
inline __device__ void serve() {
  if (state().ring_count != 0) {
    drain_together();
  }
}

// Whether the leader's whole warp takes part in its wait: then 32 commands are applied at once.
template <typename Scope>
__device__ bool serves_by_warp() {
  return state().ring_count != 0 && Scope::size() >= 32;
}

}  // namespace weft::device::detail

#endif  // WEFT_DEVICE_INBOX_CUH
