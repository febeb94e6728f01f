// What the kernels of dispatch and combine share: groups of threads, parcels, waits with a limit,
// the end of a call.
//
// Blocks do not wait for each other, only for peers, so a kernel that sends and receives needs all
// its blocks resident, and nothing else. The number of a call is in GPU memory: each block reads it
// when it enters, and the last one to enter a kernel that receives advances it, so kernels may be
// captured in a graph and replayed.
//
// All of this is compiled twice, in a namespace each: by in_node.cu for ranks that share a node,
// and by between_nodes.cu. What is for ranks of other nodes was never run inside one, but it
// doubled the code of the kernels and made them slower.
//
// Memory: a thread that stores a word for a peer stands behind its group's barrier and fences
// itself; a thread that has seen one fences before the barrier that lets its group read. Parcels
// carry their data, so they need neither.
#pragma once

#include <weft/device/access.cuh>
#include <weft/device/spin.cuh>
#include <weft/moe/layouts.hpp>

#include <cstddef>
#include <cstdint>
#include <type_traits>

#include "moe/src/gpu/kernels/threads.cuh"
#include "moe/src/gpu/layout.hpp"

#ifndef WEFT_MOE_KERNELS
#error "compiled by in_node.cu and between_nodes.cu"
#endif

namespace weft::moe::gpu::WEFT_MOE_KERNELS {

// The variant of a dispatch kernel. Each variant is a separate kernel: skipped code still costs
// instruction-cache misses.
template <Rows kItsRows, bool kIsByRank, bool kTokensAreFew, bool kIsPolled = false>
struct Path {
  static constexpr Rows kRows = kItsRows;
  // The layout has rows by rank (weft/moe/layouts.hpp).
  static constexpr bool kByRank = kIsByRank;
  // This rank has few tokens, whatever others have (Shape::has_few).
  static constexpr bool kHasFewTokens = kTokensAreFew;
  // All rows are polled (polled.cuh). If not, those of ranks with few tokens travel as parcels.
  static constexpr bool kPolls = kIsPolled;
  static constexpr bool kParcels = kHasFewTokens && !kPolls;
  // What takes a row.
  using Takers = std::conditional_t<kPolls, Taker, Group>;
  // The warps of a group share the tokens before one, and not its lanes. For up to 32 tokens that
  // is one warp, and slower.
  static constexpr bool kCountsSlots = kRows == Rows::BlockPerRow && kByRank && !kHasFewTokens;
};

inline __host__ __device__ bool is_by_rank(const KernelArguments& exchange) {
  return weft::moe::is_by_rank(exchange.layout);
}

// Experts of this rank.
inline __device__ std::uint32_t local_experts(const KernelArguments& exchange) {
  return static_cast<std::uint32_t>(exchange.shape.map.count_of(exchange.me));
}

inline __device__ std::byte* mine(const KernelArguments& exchange) {
  return exchange.memory[exchange.me];
}

template <typename T>
__device__ T* at(std::byte* memory, std::size_t offset) {
  return reinterpret_cast<T*>(memory + offset);
}

inline __device__ bool is_remote(const KernelArguments& exchange, std::uint32_t rank) {
  return kBetweenNodes && (exchange.remote >> rank & 1) != 0;
}

// The rank to which a row for `rank` is sent: itself, or the relay of its node.
inline __device__ std::uint32_t destination_of(const KernelArguments& exchange,
                                               std::uint32_t rank) {
  return kBetweenNodes ? exchange.relay_there[rank] : rank;
}

// The memory in which the rows of `source` arrive: this rank's, or that of the relay of this node.
inline __device__ std::byte* rows_from(const KernelArguments& exchange, std::uint32_t source) {
  return kBetweenNodes ? exchange.memory[exchange.relay_here[source]] : mine(exchange);
}

// Whether rows that came by node have a place among those of their source for each rank, which is
// no slot then. They say it themselves, in rank layouts too.
inline __device__ bool places_ranks(const KernelArguments& exchange) {
  return kBetweenNodes && exchange.by_node && is_by_rank(exchange);
}

// Whether ranks of this node read the rows of `source` in one place, and return one partial sum of
// them.
inline __device__ bool shares_rows(const KernelArguments& exchange, std::uint32_t source) {
  return kBetweenNodes && exchange.by_node && is_remote(exchange, source);
}

// Whether rows of `source` are not shown where they arrive, in a layout whose rows are.
inline __device__ bool arrives_apart(const KernelArguments& exchange, std::uint32_t source) {
  return kBetweenNodes && exchange.shape.shares_apart && is_remote(exchange, source);
}

// Number `index` of rows slot by slot: its slot, where each slot has one row of `sources` ranks,
// which are all or all but one.
inline __device__ std::uint32_t slot_of(const KernelArguments& exchange,
                                        std::uint32_t index,
                                        std::uint32_t sources) {
  const Shape& shape = exchange.shape;
  const std::uint64_t factor = sources == shape.ranks() ? shape.by_ranks : shape.by_other_ranks;
  return factor == 0 ? index : static_cast<std::uint32_t>(__umul64hi(index, factor));
}

// ---- Ranks that do not come

inline __device__ bool is_missing(const KernelArguments& exchange, std::uint32_t rank) {
  return (device::load_relaxed(&exchange.state->missing) >> rank & 1) != 0;
}

// A call, as its kernel began it.
struct Call {
  weft_moe_step step;
  std::uint64_t number;
  std::uint64_t missing = 0;  // ranks that did not come to an earlier one, as bits
};

// Tells the host too. Threads may do so at once: whoever finds that others came between tells it
// again.
inline __device__ void mark_missing(const KernelArguments& exchange,
                                    const Call& call,
                                    std::uint32_t rank) {
  Record& record = *exchange.record;
  auto* missing = reinterpret_cast<unsigned long long*>(&exchange.state->missing);
  const std::uint64_t before = atomicOr(missing, 1ULL << rank);
  // With WEFT_MOE_MASK every later call comes here, too; the record keeps the first one. Whoever
  // ends the kernel has told it.
  if ((before >> rank & 1) != 0 && !exchange.ends) {
    return;
  }
  std::uint64_t told = before | 1ULL << rank;
  for (std::uint64_t now = 0; now != told;) {
    told = now == 0 ? told : now;
    record.missing_call = call.number;
    record.missing_step = static_cast<std::uint32_t>(call.step);
    record.missing_blocks = gridDim.x;
    record.missing_begun = device::load_relaxed(&exchange.state->entered);
    // SYNC moe-record (pairs with moe/src/gpu/gpu_exchange.cpp): the ranks are written last.
    device::fence_release();
    device::store_relaxed(&record.missing, told);
    now = device::load_relaxed(&exchange.state->missing);
  }
}

inline __device__ device::OperationName name_of(weft_moe_step step) {
  return step == WEFT_MOE_DISPATCH ? device::OperationName::MoeDispatch
                                   : device::OperationName::MoeCombine;
}

inline __device__ __noinline__ void end_kernel_without(const KernelArguments& exchange,
                                                       weft_moe_step step,
                                                       std::uint64_t number,
                                                       std::uint32_t rank) {
  device::detail::end_kernel(
      device::detail::packed({device::FailureKind::RankMissing, name_of(step)}),
      exchange.state->pes[rank], nullptr, number);
}

// KernelArguments::ends. The host has been told who is missing. Does not return, which the compiler
// has to know: callers would keep all their registers across it.
inline __device__ void end_without(const KernelArguments& exchange,
                                   weft_moe_step step,
                                   std::uint64_t number,
                                   std::uint32_t rank) {
  end_kernel_without(exchange, step, number, rank);
  __builtin_unreachable();
}

inline constexpr std::uint32_t kLooksPerCheck = 64;

inline constexpr std::uint64_t kReportedNsMin = 1'000'000'000;  // the least WEFT_WAIT_REPORT

// Between nodes waits are reported as those of other calls are (WEFT_WAIT_REPORT).
inline __device__ __noinline__ void report(const KernelArguments& exchange,
                                           weft_moe_step step,
                                           std::uint32_t rank,
                                           std::uint64_t waited_ns) {
  device::detail::report_wait(
      device::detail::packed({device::FailureKind::None, name_of(step)}), exchange.state->pes[rank],
      nullptr, 0, {device::detail::now_ms(), static_cast<std::uint32_t>(waited_ns / 1'000'000)});
}

// With WEFT_MOE_MASK: whether a rank that is late gets a second timeout. One that died may have
// reached some ranks and not others. Those wait for it in an earlier call, and are late in this one
// by as much; so if several are late, any of them may be such. A part of a timeout is given for the
// waits for others to see that, too.
inline __device__ bool may_be_held_up(const KernelArguments& exchange,
                                      std::uint32_t rank,
                                      std::uint64_t waited_ns) {
  auto* late = reinterpret_cast<unsigned long long*>(&exchange.state->late);
  const std::uint64_t all = atomicOr(late, 1ULL << rank) | 1ULL << rank;
  const bool is_alone = all == 1ULL << rank;
  return waited_ns < (is_alone ? exchange.timeout_ns / 8 * 9 : exchange.timeout_ns * 2);
}

// What a wait does now and then, apart from its loop: since when it waits (`start`: 0 at first, as
// the timer is slow), or 0 if `rank` is missing, from now on if it has not come within the timeout.
inline __device__ __noinline__ std::uint64_t look_around(const KernelArguments& exchange,
                                                         weft_moe_step step,
                                                         std::uint64_t number,
                                                         std::uint32_t rank,
                                                         std::uint64_t start) {
  if (is_missing(exchange, rank)) {
    return 0;
  }
  const std::uint64_t now = device::now_ns();
  const std::uint64_t since = start == 0 ? now : start;
  if (kBetweenNodes && now - since > kReportedNsMin) {
    report(exchange, step, rank, now - since);
  }
  const std::uint64_t waited = now - since;
  if (waited > exchange.timeout_ns && !(exchange.masks && may_be_held_up(exchange, rank, waited))) {
    mark_missing(exchange, {step, number}, rank);
    if (exchange.ends) {
      end_without(exchange, step, number, rank);
    }
    return 0;
  }
  return since;
}

// Polls until `done()`, and applies what comes from other nodes. False if `rank` is missing, or if
// `gives_up()`.
template <typename Done, typename GivesUp>
__device__ bool wait_for(const KernelArguments& exchange,
                         const Call& call,
                         std::uint32_t rank,
                         Done&& done,
                         GivesUp&& gives_up) {
  std::uint64_t start = 0;
#pragma unroll 1
  for (std::uint32_t looks = 1; !done(); ++looks) {
    if (kBetweenNodes) {
      device::detail::serve();
    }
    if (looks % kLooksPerCheck != 0) {
      continue;
    }
    if (gives_up()) {
      return done();
    }
    start = look_around(exchange, call.step, call.number, rank, start);
    if (start == 0) {
      return done();
    }
  }
  return true;
}

// ---- Parcels

// What a rank says of one call: how many rows it sends (-1: it refuses), and what all must do
// alike.
struct Header {
  std::int32_t rows;
  std::uint32_t mode;
};

// Bits of the mode of a dispatch.
inline constexpr std::uint32_t kHasWeights = 1;
inline constexpr std::uint32_t kAsParcels = 2;

inline __device__ std::uint64_t packed(Header header) {
  return static_cast<std::uint32_t>(header.rows) | std::uint64_t{header.mode} << 32U;
}

inline __device__ Header unpacked(std::uint64_t data) {
  return {static_cast<std::int32_t>(static_cast<std::uint32_t>(data)),
          static_cast<std::uint32_t>(data >> 32U)};
}

inline __device__ void send_parcel(std::byte* to, std::uint64_t data, std::uint64_t call) {
  device::store_relaxed_16(to, data, call);
}

inline __device__ bool has_parcel(const std::byte* from, std::uint64_t call, std::uint64_t& data) {
  std::uint64_t seen = 0;
  device::load_relaxed_16(from, data, seen);
  return seen == call;
}

// ---- What the host hears

inline __device__ void record_refusal(const KernelArguments& exchange,
                                      weft_moe_step step,
                                      std::uint64_t call,
                                      std::uint32_t rank,
                                      std::uint32_t mode) {
  Record& record = *exchange.record;
  device::store_relaxed(&record.refused_call, call);
  device::store_relaxed(&record.refused, rank | std::uint64_t{mode} << 32U);
  // SYNC moe-record (pairs with moe/src/gpu/gpu_exchange.cpp): the step is written last.
  device::fence_release();
  device::store_relaxed(&record.refused_step, static_cast<std::uint32_t>(step));
}

// A kernel of this folder may begin when the last blocks of the one before it in the stream end
// (launch.cuh): nothing that others write is touched before that one is over. None lets the next
// one begin earlier. Its blocks would take the place of those that have ended, while others wait
// for a peer, whose kernel may wait for one that finds no room here.
inline __device__ void await_kernel_before() {
#if defined(__CUDA_ARCH__) && __CUDA_ARCH__ >= 900
  asm volatile("griddepcontrol.wait;" ::: "memory");
#endif
}

// All threads of the block, when it enters a kernel; `done` counts the calls. One thread reads for
// all: the words of all blocks are the same few, and 512 threads of each that read them kept one
// another waiting for 1.2 us. What the others load meanwhile is on its way together with that.
class Entry {
 public:
  __device__ Entry(const KernelArguments& exchange, weft_moe_step step, const std::uint64_t* done)
      : step_(step) {
    if (thread_of_block() == kThreads - 1) {
      calls_ = device::load_relaxed(done);
      missing_ = device::load_relaxed(&exchange.state->missing);
    }
  }

  // The block's barrier, too.
  [[nodiscard]] __device__ Call call() const {
    __shared__ std::uint64_t number;
    __shared__ std::uint64_t missing;
    if (thread_of_block() == kThreads - 1) {
      number = calls_ + 1;
      missing = missing_;
    }
    __syncthreads();
    return {step_, number, missing};
  }

 private:
  weft_moe_step step_;
  std::uint64_t calls_ = 0;
  std::uint64_t missing_ = 0;
};

// What the kernels of a call have drawn (SendNumbers).
inline __device__ std::uint32_t* drawn_by(const KernelArguments& exchange,
                                          weft_moe_step step,
                                          std::uint64_t number) {
  return &exchange.state->drawn[(step == WEFT_MOE_DISPATCH ? 0 : kParities) + number % kParities];
}

// All threads of the block, behind its Entry, in a kernel that receives: every block has read the
// number before it is advanced. Not at once: its result takes as long as a load, and what peers
// wait for is sent first. `thread` does it. Here a kernel ends, too, that an earlier one has left a
// rank out of (KernelArguments::ends).
inline __device__ void advance(const KernelArguments& exchange,
                               const Call& call,
                               std::uint64_t* done,
                               std::uint32_t thread = kThreads - 1) {
  if (thread_of_block() != thread) {
    return;
  }
  if (exchange.ends && call.missing != 0) {
    end_without(exchange, call.step, call.number,
                static_cast<std::uint32_t>(__ffsll(static_cast<long long>(call.missing)) - 1));
  }
  if (atomicAdd(&exchange.state->entered, 1U) == gridDim.x - 1) {
    device::store_relaxed(&exchange.state->entered, 0);
    *drawn_by(exchange, call.step, call.number + 1) = 0;
    device::store_relaxed(&exchange.state->late, 0);
    device::store_relaxed(done, call.number);
  }
}

// ---- What is sent, shared by the groups of a grid

// The numbers of a group that sends: by turns where groups are large. Warps draw theirs, as some
// multiprocessors take twice as long as others for what crosses the link.
template <Rows kRows>
class SendNumbers {
 public:
  // The first `groups` groups of each block send.
  __device__ SendNumbers(const KernelArguments& exchange, const Call& call, std::uint32_t groups)
      : drawn_(drawn_by(exchange, call.step, call.number)),
        all_(gridDim.x * groups),
        index_(kRows == Rows::WarpPerRow ? (gridDim.x - 1 - blockIdx.x) * groups + Group::number()
                                         : Group::index()) {}

  [[nodiscard]] __device__ std::uint32_t index() const { return index_; }

  // Some time before next(), which needs its result.
  __device__ void begin_next() {
    if (kRows == Rows::WarpPerRow && lane() == 0) {
      number_ = atomicAdd(drawn_, 1U);
    }
  }

  __device__ void next() {
    index_ = kRows == Rows::WarpPerRow ? all_ + __shfl_sync(kAllLanes, number_, 0) : index_ + all_;
  }

 private:
  std::uint32_t* drawn_;
  std::uint32_t all_;  // groups, which have their first number without drawing
  std::uint32_t index_;
  std::uint32_t number_ = 0;
};

// ---- Rows

using device::Vector16;

inline constexpr std::uint32_t kUnit = sizeof(Vector16);

// visit(unit), by the threads of a group.
template <typename Visit>
__device__ void for_units(std::uint32_t units, Visit&& visit) {
#pragma unroll 1
  for (std::uint32_t unit = Group::thread(); unit < units; unit += Group::size()) {
    visit(unit);
  }
}

// visit(unit, what is there), with the loads of kTogether units on their way together. For memory
// that others write.
template <std::uint32_t kTogether, Rows kRows, typename Visit>
__device__ void for_units_together(const Vector16* from, std::uint32_t units, Visit&& visit) {
#pragma unroll 1
  for (std::uint32_t first = Group::thread(); first < units;
       first += kTogether * Group::size<kRows>()) {
    Vector16 loaded[kTogether];
#pragma unroll
    for (std::uint32_t i = 0; i < kTogether; ++i) {
      if (first + i * Group::size<kRows>() < units) {
        loaded[i] = device::load_shared(from + first + i * Group::size<kRows>());
      }
    }
#pragma unroll
    for (std::uint32_t i = 0; i < kTogether; ++i) {
      if (first + i * Group::size<kRows>() < units) {
        visit(first + i * Group::size<kRows>(), loaded[i]);
      }
    }
  }
}

// ---- Rows as parcels: each 16 bytes of a row are two

inline __device__ void store_as_parcels(std::byte* parcels,
                                        std::uint32_t unit,
                                        const Vector16& data,
                                        std::uint64_t call) {
  std::byte* to = parcels + parcel_of(unit, 0) * kParcel;
  send_parcel(to, data.x | std::uint64_t{data.y} << 32U, call);
  send_parcel(to + kWarp * kParcel, data.z | std::uint64_t{data.w} << 32U, call);
}

// False if a part of it is not here.
inline __device__ bool load_from_parcels(const std::byte* parcels,
                                         std::uint32_t unit,
                                         std::uint64_t call,
                                         Vector16& data) {
  const std::byte* from = parcels + parcel_of(unit, 0) * kParcel;
  std::uint64_t low = 0;
  std::uint64_t high = 0;
  const bool has_low = has_parcel(from, call, low);
  const bool has_high = has_parcel(from + kWarp * kParcel, call, high);
  data = {static_cast<std::uint32_t>(low), static_cast<std::uint32_t>(low >> 32U),
          static_cast<std::uint32_t>(high), static_cast<std::uint32_t>(high >> 32U)};
  return has_low && has_high;
}

// A warp alone needs more of them.
template <Rows kRows, typename Visit>
__device__ void for_units_loaded(const Vector16* from, std::uint32_t units, Visit&& visit) {
  for_units_together<kRows == Rows::WarpPerRow ? 8 : 4, kRows>(from, units, visit);
}

}  // namespace weft::moe::gpu::WEFT_MOE_KERNELS
