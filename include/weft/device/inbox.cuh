// Small operations from other nodes (puts, signals, atomics) stay in the inbox until a thread of
// this GPU applies them: a thread that waits, or a kernel that the proxy starts if no thread waits.
// Only threads of this GPU access the words, so all updates are atomic with its own atomics.
#ifndef WEFT_DEVICE_INBOX_CUH
#define WEFT_DEVICE_INBOX_CUH

#include <weft/device/copy.cuh>
#include <weft/device/inbox.hpp>
#include <weft/device/module.cuh>
#include <weft/device/ring_memory.cuh>
#include <weft/device/standard.hpp>
#include <weft/device/word.cuh>

namespace weft::device::detail {

template <std::size_t kBytes>
__device__ std::uint64_t update_word(const Command& command) {
  using Word = CudaWord<kBytes>;
  const InboxUpdate change = InboxUpdate::from(command);
  return update(reinterpret_cast<Word*>(change.word_address), change.op,
                static_cast<Word>(change.operand), static_cast<Word>(change.compare));
}

// What a command does to this GPU's memory. Never inlined: that keeps what was read from the slot
// in memory, and every loop that waits, which is where commands are applied, within the registers
// that a kernel of 1024 threads has.
inline __device__ __noinline__ void apply_data(const SlotWords& arrived, const std::byte* payload) {
  const InboxPut put = InboxPut::from(arrived);
  copy_payload(reinterpret_cast<void*>(put.dest_address), payload,
               static_cast<std::uint32_t>(put.bytes));
}

inline __device__ __noinline__ std::uint64_t apply_update(const SlotWords& arrived) {
  const Command command = decode(arrived);
  if (command.kind == CommandKind::Put || command.kind == CommandKind::Nop) {
    return 0;
  }
  return command.element_bytes == 8 ? update_word<8>(command) : update_word<4>(command);
}

#ifdef __CUDACC_RDC__
inline constexpr std::uint32_t kPayloadsTogether = 1;  // for registers, see kUnrollMost
#else
inline constexpr std::uint32_t kPayloadsTogether = 4;
#endif

// By a whole warp; each lane has its own command's data, 0 bytes if none. A payload is read by few
// large loads, and kPayloadsTogether of them in one round trip: a lane alone needs eight for 512
// bytes.
inline __device__ __noinline__ void apply_data_by_warp(void* dest,
                                                       const std::byte* payload,
                                                       std::uint32_t bytes) {
  std::uint32_t owners = __ballot_sync(~0U, bytes != 0);
  while (owners != 0) {
    PayloadPart parts
        [kPayloadsTogether];  // NOLINT(modernize-avoid-c-arrays): device code has no std::array
#pragma unroll
    for (PayloadPart& part : parts) {
      const int owner = owners == 0 ? 0 : __ffs(static_cast<int>(owners)) - 1;
      const std::uint32_t all = __shfl_sync(~0U, bytes, owner);
      part = load_part(from_lane(dest, owner), from_lane(payload, owner), owners == 0 ? 0 : all);
      owners &= owners - 1;
    }
#pragma unroll
    for (const PayloadPart& part : parts) {
      store_part(part);
    }
  }
}

// Whether that takes no more round trips than if each lane copies its own, 64 bytes at a time. The
// same for all lanes.
inline __device__ bool is_faster_by_warp(std::uint32_t bytes) {
  const auto payloads = static_cast<std::uint32_t>(__popc(__ballot_sync(~0U, bytes != 0)));
  const std::uint32_t longest = __reduce_max_sync(~0U, bytes);
  return 64 * payloads <= kPayloadsTogether * longest;
}

struct ApplyToGpu {
  template <typename Lanes>
  __device__ void copy(const Lanes& lanes,
                       const SlotWords& arrived,
                       const std::byte* payload,
                       std::uint32_t bytes) const {
    if (lanes.count() == Warp::size() && is_faster_by_warp(bytes)) {
      apply_data_by_warp(reinterpret_cast<void*>(InboxPut::from(arrived).dest_address), payload,
                         bytes);
    } else if (bytes != 0) {
      apply_data(arrived, payload);
    }
  }

  __device__ std::uint64_t update(const SlotWords& arrived) const { return apply_update(arrived); }
};

// The threads of a warp that apply commands together, in lane order.
class Lanes {
 public:
  __device__ Lanes(unsigned mask, std::uint32_t number, std::uint32_t count)
      : mask_(mask), number_(number), count_(count) {}

  __device__ std::uint32_t number() const { return number_; }

  __device__ std::uint32_t count() const { return count_; }

  __device__ bool is_first() const { return number_ == 0; }

  template <typename T>
  __device__ T from_first(T value) const {
    return __shfl_sync(mask_, value, __ffs(static_cast<int>(mask_)) - 1);
  }

  __device__ std::uint32_t leading(bool yes) const {
    const unsigned no = mask_ & ~__ballot_sync(mask_, yes);
    const unsigned before_first_no = (no & (0U - no)) - 1;  // all if there is none
    return static_cast<std::uint32_t>(__popc(mask_ & before_first_no));
  }

  __device__ void sync() const { __syncwarp(mask_); }

 private:
  unsigned mask_;
  std::uint32_t number_;
  std::uint32_t count_;
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

// The most commands that each thread applies in a row, so that it also makes progress with its own
// work, and a thread that is alone leaves the inbox to the warp that the proxy sends where many
// commands wait.
inline constexpr std::uint32_t kApplyEachMax = 4;

// Returns the number of commands applied.
inline __device__ std::uint32_t drain_inbox(const Lanes& lanes) {
  return InboxConsumer<GpuMemory, ApplyToGpu>(state().ring(state().ring_count))
      .drain(lanes, kApplyEachMax * lanes.count());
}

// For threads that wait independently; those of a warp that wait at the same time apply together.
inline __device__ __noinline__ void drain_together() {
  drain_inbox(lanes_here());
}

inline __device__ __noinline__ void drain_by_warp() {
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
