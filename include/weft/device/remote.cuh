// The path to PEs whose memory is not mapped here: one command into a ring that the proxy, a CPU
// thread, drains onto the rails (command_views.hpp, ring.hpp). Called by rma, signal and atomics,
// not by programs, and by cold_call.cuh with values for arguments: a kernel whose PEs are all
// mapped spends neither registers nor stack on it.
//
// The threads of a block share a ring, chosen by the block's number. A fence orders one ring; what
// other blocks have posted before it, as far as the calling thread has synchronized with them, it
// has the proxy take first.
#ifndef WEFT_DEVICE_REMOTE_CUH
#define WEFT_DEVICE_REMOTE_CUH

#include <weft/device/command_views.hpp>
#include <weft/device/peers.cuh>
#include <weft/device/ring_memory.cuh>
#include <weft/device/spin.cuh>
#include <weft/device/standard.hpp>
#include <weft/device/word.cuh>

namespace weft::device::remote {

// Whether the call returns only when its local side may be reused (put) or is filled (get).
enum class Wait : bool { No, Yes };

struct SignalUpdate {
  std::uint64_t* word;
  std::uint64_t value;
  SignalOp op;
};

struct AtomicUpdate {
  AtomicOp op;
  std::uint32_t element_bytes;
  std::uint64_t operand;
  std::uint64_t compare;
};

using Producer = RingProducer<GpuMemory>;

// Rings are passed by index: their views are read from constant memory, which a reference would
// hide.
inline __device__ std::uint32_t own_ring() {
  return Grid::block() & (state().ring_count - 1);
}

// The work between two polls while waiting for the proxy.
class Idle {
 public:
  __device__ explicit Idle(const detail::Failure& waiting) : waiting_(waiting) {}

  __device__ void operator()() {
    ++looks_;
    if (looks_ % kLooksPerServe == 0) {
      detail::serve();
    }
    // A poll of pinned host memory takes as long as many polls of GPU memory.
    patience_.poll(waiting_, 64);
  }

 private:
  static constexpr std::uint32_t kLooksPerServe = 4;  // serving takes longer than polling

  detail::Failure waiting_;
  detail::Patience patience_;
  std::uint32_t looks_ = 0;
};

inline __device__ detail::Failure waiting_for(OperationName operation, int pe) {
  return {FailureKind::None, operation, pe};
}

inline __device__ std::uint64_t offset(const void* address) {
  return detail::offset_of(address);
}

// Returns the first of `count` positions in a row at which commands may be written; waits for room.
inline __device__ __noinline__ std::uint64_t take_slots(std::uint32_t ring,
                                                        int pe,
                                                        std::uint32_t count) {
  Producer producer(state().ring(ring));
  const std::uint64_t position = producer.claim(count);
  producer.wait_for_room(position + count - 1, Idle(waiting_for(OperationName::Put, pe)));
  return position;
}

inline __device__ std::uint64_t take_slot(std::uint32_t ring, int pe) {
  return take_slots(ring, pe, 1);
}

inline __device__ __noinline__ std::uint64_t wait_for_reply(std::uint32_t ring,
                                                            std::uint64_t position,
                                                            OperationName operation,
                                                            int pe) {
  return Producer(state().ring(ring)).wait_reply(position, Idle(waiting_for(operation, pe)));
}

// Posts one command without payload. Returns the reply if the command wants one.
inline __device__ __noinline__ std::uint64_t post(const Command& command, OperationName operation) {
  const std::uint32_t ring = own_ring();
  const int pe = static_cast<int>(command.pe);
  const std::uint64_t position = take_slot(ring, pe);
  Producer(state().ring(ring)).publish(position, command);
  return (command.flags & kReplyWanted) != 0 ? wait_for_reply(ring, position, operation, pe) : 0;
}

// The threads of a scope that copy a small payload: its first warp.
template <typename Scope>
struct Carriers {
  static __device__ std::uint32_t count() { return Scope::size() < 32 ? Scope::size() : 32; }

  static __device__ unsigned mask() { return count() == 32 ? ~0U : (1U << count()) - 1; }

  static __device__ std::uint64_t from_leader(std::uint64_t value) {
    return count() == 1 ? value : __shfl_sync(mask(), value, 0);
  }

  static __device__ void sync() {
    if (count() > 1) {
      __syncwarp(mask());
    }
  }

  // What any of them has stored is visible before what the leader stores next. Each fences its own;
  // a warp issues it once.
  static __device__ void release() {
    sync();
    // SYNC ring-word (pairs with src/proxy/ring_memory.hpp): payloads, for the consumer of the
    // commands
    fence_release();
    sync();
  }
};

// The payload is in its slot, and released.
inline WEFT_DEVICE_APART void publish_with_payload(std::uint32_t ring,
                                                   std::uint64_t position,
                                                   const Command& command) {
  Command published = command;
  published.flags |= kPayloadInSlot;
  Producer(state().ring(ring)).publish(position, published);
}

// A put or put_signal of at most kPayloadBytes: the data is copied into the slot's payload, so the
// source may be reused at once.
template <typename Scope>
__device__ void post_with_payload(const Command& command, const void* source) {
  using Crew = Carriers<Scope>;
  const std::uint32_t rank = Scope::rank();
  if (rank >= Crew::count()) {
    return;
  }
  const std::uint32_t ring = own_ring();
  std::uint64_t position = rank == 0 ? take_slot(ring, static_cast<int>(command.pe)) : 0;
  position = Crew::from_leader(position);
  detail::copy_by_crew<Source::Mine, 1>(state().ring(ring).payload(position), source,
                                        command.words[PutCommand::kBytes], {rank, Crew::count()});
  Crew::release();
  if (rank == 0) {
    publish_with_payload(ring, position, command);
  }
}

// Larger puts: the proxy has the data fetched from the source address.
template <typename Scope>
__device__ void post_by_address(Command command,
                                const void* source,
                                OperationName operation,
                                Wait wait) {
  if (!is_leader<Scope>()) {
    return;
  }
  command.words[PutCommand::kSourceAddress] = reinterpret_cast<std::uint64_t>(source);
  command.flags |= wait == Wait::Yes ? kReplyWanted : 0;
  // SYNC ring-word (pairs with src/proxy/ring_memory.hpp): the source, for the consumer of the
  // command
  fence_release();
  post(command, operation);
}

// The payloads of one fence: enough that its time counts little, few enough to leave room for
// others in the ring.
inline constexpr std::uint32_t kPiecesTogether = 8;

// A piece of a put, `offset` bytes from its start. A word comes with the last piece, after the
// others.
inline __device__ __noinline__ void publish_piece(std::uint32_t ring,
                                                  std::uint64_t position,
                                                  const Command& whole,
                                                  std::uint64_t offset) {
  const std::uint64_t left = whole.words[PutCommand::kBytes] - offset;
  Command piece = whole;
  piece.words[PutCommand::kDestOffset] += offset;
  piece.words[PutCommand::kBytes] = left < kPayloadBytes ? left : kPayloadBytes;
  if (left > kPayloadBytes) {
    piece.kind = CommandKind::Put;
  } else if (whole.kind != CommandKind::Put) {
    piece.flags |= kFenceBefore;
  }
  publish_with_payload(ring, position, piece);
}

// Payloads lie side by side, but for those of the last slot and of the first.
template <typename Scope>
__device__ __noinline__ void fill_payloads(std::uint32_t ring,
                                           std::uint64_t first,
                                           const std::byte* from,
                                           std::uint64_t bytes) {
  const RingView view = state().ring(ring);
  const std::uint64_t to_end = (view.capacity - view.slot_of(first)) * kPayloadBytes;
#pragma unroll 1
  for (std::uint64_t done = 0; done < bytes;) {
    const std::uint64_t part = done == 0 && to_end < bytes ? to_end : bytes - done;
    detail::copy_by_crew<Source::Mine, 4>(view.payload(first + done / kPayloadBytes), from + done,
                                          part, {Scope::rank(), Carriers<Scope>::count()});
    done += part;
  }
}

// By payloads: where a warp fills them, a few at once are faster than a copy engine, and they also
// carry shared and local memory, which the proxy cannot reach.
template <typename Scope>
__device__ __noinline__ void post_in_pieces(const Command& whole, const void* source) {
  using Crew = Carriers<Scope>;
  const std::uint32_t rank = Scope::rank();
  if (rank >= Crew::count()) {
    return;
  }
  const std::uint32_t ring = own_ring();
  std::uint64_t bytes = 0;
#pragma unroll 1
  for (std::uint64_t done = 0; done < whole.words[PutCommand::kBytes]; done += bytes) {
    constexpr std::uint64_t kMost = kPiecesTogether * kPayloadBytes;
    bytes = min(whole.words[PutCommand::kBytes] - done, kMost);
    const auto count = static_cast<std::uint32_t>((bytes + kPayloadBytes - 1) / kPayloadBytes);
    std::uint64_t position = rank == 0 ? take_slots(ring, static_cast<int>(whole.pe), count) : 0;
    position = Crew::from_leader(position);
    fill_payloads<Scope>(ring, position, static_cast<const std::byte*>(source) + done, bytes);
    Crew::release();
    if (rank == 0) {
#pragma unroll 1
      for (std::uint64_t of = 0; of < bytes; of += kPayloadBytes) {
        publish_piece(ring, position++, whole, done + of);
      }
    }
  }
}

template <typename Scope>
__device__ void post_data(const Command& command,
                          const void* source,
                          OperationName operation,
                          Wait wait) {
  if (command.words[PutCommand::kBytes] <= kPayloadBytes) {
    post_with_payload<Scope>(command, source);
  } else if (__isGlobal(source) != 0 &&
             (Carriers<Scope>::count() < 32 ||
              command.words[PutCommand::kBytes] > state().whole->carried_bytes_max)) {
    post_by_address<Scope>(command, source, operation, wait);
  } else {
    post_in_pieces<Scope>(command, source);
  }
}

template <typename Scope>
__device__ __noinline__ void put(
    void* dest, const void* source, std::size_t bytes, int pe, Wait wait) {
  if (bytes == 0) {
    return;
  }
  Command command;
  command.kind = CommandKind::Put;
  command.pe = static_cast<std::uint32_t>(pe);
  command.words[PutCommand::kBytes] = bytes;
  command.words[PutCommand::kDestOffset] = offset(dest);
  post_data<Scope>(command, source, OperationName::Put, wait);
}

template <typename Scope>
__device__ __noinline__ void put_signal(
    void* dest, const void* source, std::size_t bytes, SignalUpdate update, int pe, Wait wait) {
  Command command;
  command.kind = bytes == 0 ? CommandKind::Signal : CommandKind::PutSignal;
  command.pe = static_cast<std::uint32_t>(pe);
  command.words[PutCommand::kBytes] = bytes;
  command.words[PutCommand::kDestOffset] = offset(dest);
  command.words[WordUpdate::kWordOffset] = offset(update.word);
  command.words[WordUpdate::kOperand] = update.value;
  command.op = update.op == SignalOp::Set ? AtomicOp::Set : AtomicOp::Add;
  if (bytes != 0) {
    post_data<Scope>(command, source, OperationName::PutSignal, wait);
  } else if (is_leader<Scope>()) {
    post(command, OperationName::PutSignal);
  }
}

// With SignalOrder::AfterPuts it becomes visible after what this block's threads have posted to the
// PE before.
enum class SignalOrder : bool { None, AfterPuts };

inline __device__ __noinline__ void signal(SignalUpdate update, int pe, SignalOrder order) {
  Command command;
  command.kind = CommandKind::Signal;
  command.pe = static_cast<std::uint32_t>(pe);
  command.words[WordUpdate::kWordOffset] = offset(update.word);
  command.words[WordUpdate::kOperand] = update.value;
  command.op = update.op == SignalOp::Set ? AtomicOp::Set : AtomicOp::Add;
  command.flags = order == SignalOrder::AfterPuts ? kFenceBefore : 0;
  post(command, OperationName::Signal);
}

inline __device__ __noinline__ std::uint64_t atomic(void* word,
                                                    AtomicUpdate update,
                                                    int pe,
                                                    bool is_fetching) {
  Command command;
  command.kind = CommandKind::Atomic;
  command.pe = static_cast<std::uint32_t>(pe);
  command.element_bytes = static_cast<std::uint8_t>(update.element_bytes);
  command.op = update.op;
  command.words[WordUpdate::kWordOffset] = offset(word);
  command.words[WordUpdate::kOperand] = update.operand;
  command.words[WordUpdate::kCompare] = update.compare;
  command.flags = is_fetching ? kReplyWanted : 0;
  return post(command, OperationName::Atomic);
}

// A value of up to 8 bytes. A word of 4 or 8 is carried in the command itself.
inline __device__ __noinline__ void put_value(void* dest,
                                              std::uint64_t bits,
                                              std::uint32_t bytes,
                                              int pe) {
  const bool is_word =
      bytes == 4 || bytes == 8;  // a structure may have other sizes, or lie across words
  if (!is_word || reinterpret_cast<std::uint64_t>(dest) % bytes != 0) {
    put<Thread>(dest, &bits, bytes, pe, Wait::No);
  } else {
    atomic(dest, {AtomicOp::Set, bytes, bits, 0}, pe, false);
  }
}

// Values that are no words are extracted from the word that contains them, or from two.
inline __device__ __noinline__ std::uint64_t get_value(const void* source,
                                                       std::uint32_t bytes,
                                                       int pe) {
  const auto address = reinterpret_cast<std::uint64_t>(source);
  const std::uint32_t word_bytes = bytes == 8 ? 8 : 4;
  const std::uint64_t inside = address & (word_bytes - 1);
  if (inside + bytes > word_bytes) {
    const std::uint64_t skipped = address & 7;
    std::uint64_t bits = 0;
#pragma unroll 1
    for (std::uint64_t at = address - skipped; at < address + bytes; at += 8) {
      const std::uint64_t word =
          atomic(reinterpret_cast<void*>(at), {AtomicOp::Fetch, 8, 0, 0}, pe, true);
      bits |= at < address ? word >> (8 * skipped) : word << (8 * (at - address));
    }
    return bits;
  }
  return atomic(reinterpret_cast<void*>(address - inside), {AtomicOp::Fetch, word_bytes, 0, 0}, pe,
                true) >>
         (8 * inside);
}

// Into memory that the proxy cannot reach, shared or a thread's own: a round trip for each word,
// complete when this returns.
inline __device__ __noinline__ void get_by_values(std::byte* dest,
                                                  const std::byte* source,
                                                  std::size_t bytes,
                                                  int pe) {
  const std::byte* const end = source + bytes;
#pragma unroll 1
  while (source != end) {
    const auto address = reinterpret_cast<std::uint64_t>(source);
    const auto left = static_cast<std::uint64_t>(end - source);
    const std::uint32_t unit = address % 8 == 0 && left >= 8   ? 8
                               : address % 4 == 0 && left >= 4 ? 4
                                                               : 1;
    std::uint64_t bits = get_value(source, unit, pe);
    source += unit;
#pragma unroll 1
    for (std::uint32_t i = 0; i < unit; ++i, bits >>= 8) {
      *dest++ = static_cast<std::byte>(bits);
    }
  }
}

template <typename Scope>
__device__ __noinline__ void get(
    void* dest, const void* source, std::size_t bytes, int pe, Wait wait) {
  if (bytes == 0 || !is_leader<Scope>()) {
    return;
  }
  if (__isGlobal(dest) == 0) {
    get_by_values(static_cast<std::byte*>(dest), static_cast<const std::byte*>(source), bytes, pe);
    return;
  }
  Command command;
  command.kind = CommandKind::Get;
  command.pe = static_cast<std::uint32_t>(pe);
  command.words[GetCommand::kBytes] = bytes;
  command.words[GetCommand::kDestAddress] = reinterpret_cast<std::uint64_t>(dest);
  command.words[GetCommand::kSourceOffset] = offset(source);
  command.flags = wait == Wait::Yes ? kReplyWanted : 0;
  post(command, OperationName::Get);
}

// Waits for all commands posted to the ring, unless they are known to be complete.
inline __device__ void wait_complete(std::uint32_t ring) {
  const Producer producer(state().ring(ring));
  const std::uint64_t end = producer.incomplete_below();
  Idle idle(waiting_for(OperationName::Quiet, -1));
  while (end != 0 && !producer.is_complete(end - 1)) {
    idle();
  }
}

// How many commands each of some rings has, and how many of them are known to be complete. All
// loads are in flight together, as each takes as long as all of them. Beyond the last ring: the
// last one again.
template <std::uint32_t kCount>
__device__ void load_heads(std::uint32_t first,
                           std::uint64_t (&head)[kCount],    // NOLINT(modernize-avoid-c-arrays)
                           std::uint64_t (&seen)[kCount]) {  // NOLINT(modernize-avoid-c-arrays)
  const std::uint32_t last = state().ring_count - 1;
#pragma unroll
  for (std::uint32_t i = 0; i < kCount; ++i) {
    load_relaxed_pair(state().ring(min(first + i, last)).head(), head[i], seen[i]);
  }
}

// The rings with commands not known to be complete, one bit each.
inline __device__ std::uint32_t incomplete_rings() {
  constexpr std::uint32_t kTogether = 4;
  const std::uint32_t count = state().ring_count;
  std::uint32_t incomplete = 0;
  for (std::uint32_t first = 0; first < count; first += kTogether) {
    std::uint64_t
        head[kTogether];  // NOLINT(modernize-avoid-c-arrays): device code has no std::array
    std::uint64_t seen[kTogether];  // NOLINT(modernize-avoid-c-arrays)
    load_heads(first, head, seen);
#pragma unroll
    for (std::uint32_t i = 0; i < kTogether; ++i) {
      incomplete |= seen[i] < head[i] ? 1U << min(first + i, count - 1) : 0;
    }
  }
  return incomplete;
}

// Returns when everything that this GPU has posted is visible at its targets.
inline __device__ __noinline__ void quiet() {
  for (std::uint32_t left = incomplete_rings(); left != 0; left &= left - 1) {
    wait_complete(static_cast<std::uint32_t>(__ffs(static_cast<int>(left)) - 1));
  }
  // SYNC ring-near (pairs with include/weft/device/ring_memory.cuh): also if another thread saw it;
  // gets have arrived.
  fence_acquire();
}

// Has the proxy take what other blocks have posted before it takes the own ring's next command.
// Posts nothing if all of it is known to be complete. The heads are read before a position in the
// own ring is claimed: so fences that await each other's rings never do so in a circle.
inline __device__ void await_other_rings() {
  const std::uint32_t own = own_ring();
  const std::uint32_t count = state().ring_count;
  for (std::uint32_t first = 0; first < count; first += kAwaitedRings) {
    std::uint64_t
        head[kAwaitedRings];  // NOLINT(modernize-avoid-c-arrays): device code has no std::array
    std::uint64_t seen[kAwaitedRings];  // NOLINT(modernize-avoid-c-arrays)
    load_heads(first, head, seen);
#pragma unroll
    for (std::uint32_t i = 0; i < kAwaitedRings; ++i) {
      const bool is_other = first + i < count && first + i != own;
      head[i] = is_other && seen[i] < head[i] ? head[i] : 0;
    }
    if ((head[0] | head[1] | head[2] | head[3] | head[4]) != 0) {
      Command command;
      command.kind = CommandKind::Await;
      command.words[AwaitCommand::kFirstRing] = first;
      command.words[AwaitCommand::kRingPositions] = head[0];
      command.words[AwaitCommand::kRingPositions + 1] = head[1];
      command.words[AwaitCommand::kRingPositions + 2] = head[2];
      command.words[AwaitCommand::kRingPositions + 3] = head[3];
      command.words[AwaitCommand::kRingPositions + 4] = head[4];
      post(command, OperationName::Fence);
    }
  }
}

// Commands that this PE's threads posted earlier become visible, at each peer, before those that
// this block posts later.
inline __device__ __noinline__ void fence() {
  await_other_rings();
  Command command;
  command.kind = CommandKind::Fence;
  post(command, OperationName::Fence);
}

}  // namespace weft::device::remote

#endif  // WEFT_DEVICE_REMOTE_CUH
