// What comes from other nodes and is small (puts, signals, atomics) lies in the inbox until a thread of this
// GPU applies it: whoever waits, or a kernel that the proxy starts when nobody does. Only this GPU's threads
// touch the words, so all is atomic with its own atomics.
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

// The threads that apply together: `count` neighbours in one warp, of which this is number `rank`. All of them
// are there.
struct Lanes {
  unsigned mask;
  std::uint32_t first;  // the lane of number 0
  std::uint32_t rank;
  std::uint32_t count;

  __device__ bool is_first() const { return rank == 0; }

  template <typename T>
  __device__ T from_first(T value) const {
    return __shfl_sync(mask, value, static_cast<int>(first));
  }

  // How many, from number 0 on, say yes.
  __device__ std::uint32_t leading(bool yes) const {
    const unsigned no = ~(__ballot_sync(mask, yes) >> first);
    const auto run = static_cast<std::uint32_t>(__ffs(static_cast<int>(no)) - 1);
    return no == 0 || run > count ? count : run;
  }

  __device__ void sync() const { __syncwarp(mask); }
};

// This thread alone.
inline __device__ Lanes one_lane() {
  const std::uint32_t lane = Warp::rank();
  return {1U << lane, lane, 0, 1};
}

// A whole warp.
inline __device__ Lanes warp_lanes() {
  return {~0U, 0, Warp::rank(), 32};
}

inline __device__ std::uint64_t update_word(const Command& command) {
  if (command.kind == CommandKind::Put || command.kind == CommandKind::Nop) {
    return 0;
  }
  return command.element_bytes == 8 ? update_word<8>(command) : update_word<4>(command);
}

// Applies the next commands, a lane each; returns how many. Data first, then one fence for all, then the
// words: commands between two fences of their sender may become visible in any order, but none of their words
// before its own data.
inline __device__ std::uint32_t apply_together(const RingView& ring,
                                               std::uint64_t next,
                                               const Lanes& lanes) {
  RingConsumer<GpuMemory> inbox(ring);
  Command command;
  const bool is_there = inbox.peek(next + lanes.rank, command);
  const bool may_join = lanes.is_first() || (command.flags & kFenceBefore) == 0;
  const std::uint32_t count = lanes.leading(is_there && may_join);
  const bool is_mine = lanes.rank < count;
  if (lanes.is_first() && is_there && (command.flags & kFenceBefore) != 0) {
    // SYNC device-signal (pairs with include/weft/device/wait.cuh): words of before, then data of after.
    fence_release();
  }
  lanes.sync();
  if (is_mine && command.bytes != 0) {
    copy_by_crew<Source::Peers, 4>(reinterpret_cast<void*>(command.dest),
                                   inbox.payload(next + lanes.rank), command.bytes, {0, 1});
  }
  lanes.sync();
  if (lanes.is_first() && count != 0) {
    // SYNC device-signal (pairs with include/weft/device/wait.cuh): the data, and what was applied before.
    fence_release();
  }
  lanes.sync();
  if (is_mine) {
    const std::uint64_t old = update_word(command);
    if ((command.flags & kReplyWanted) != 0) {
      inbox.reply(next + lanes.rank, old);  // the proxy reuses no slot whose reply it has not read
    }
  }
  lanes.sync();
  return count;
}

// At most so many in a row, so that whoever applies also gets on with its own.
inline constexpr std::uint32_t kApplyMax = 128;

// Applies what lies there, unless others are at it. Nobody ever waits for the lock.
inline __device__ std::uint32_t drain_inbox(const Lanes& lanes) {
  const RingView& ring = *state().inbox;
  const bool is_locked = lanes.is_first() && GpuMemory::try_lock(ring.lock);
  if (lanes.from_first(is_locked ? 1 : 0) == 0) {
    return 0;
  }
  const std::uint64_t first = GpuMemory::load_near(ring.next);  // guarded by the lock
  std::uint64_t next = first;
  std::uint32_t count = lanes.count;
  while (count == lanes.count && next - first < kApplyMax) {
    count = apply_together(ring, next, lanes);
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

static __device__ __noinline__ void drain_alone() {
  drain_inbox(one_lane());
}

static __device__ __noinline__ void drain_by_warp() {
  drain_inbox(warp_lanes());
}

// Every loop in which a thread waits calls it.
inline __device__ void serve() {
  if (state().inbox != nullptr) {
    drain_alone();
  }
}

// Whether the leader of a scope takes its warp along where it waits: then 32 commands are applied at once.
template <typename Scope>
__device__ bool serves_by_warp() {
  return state().inbox != nullptr && Scope::size() >= 32;
}

}  // namespace weft::device::detail

#endif  // WEFT_DEVICE_INBOX_CUH
