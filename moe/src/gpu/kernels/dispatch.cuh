// The kernels of a dispatch and of a refusal, and their launches.
//
// dispatch_kernel: each token is one row for each rank that it goes to (send.cuh); then the rows of
// all ranks are waited for and laid out (receive.cuh). Host code, threads: any.
#pragma once

#include <cuda_runtime.h>

#include <cstddef>
#include <type_traits>

#include "moe/src/gpu/kernels/count_places.cuh"
#include "moe/src/gpu/kernels/launch.cuh"
#include "moe/src/gpu/kernels/receive.cuh"
#include "moe/src/gpu/kernels/send.cuh"

namespace weft::moe::gpu::WEFT_MOE_KERNELS {
namespace {

struct BlockPerRowReceiveMemory {
  ReceiveMemory receive;
  alignas(16) std::byte tails[kGroupsOfFew][kTailMax];
};

// Warps may read what comes while another one still sends. The end has the size that the launch
// gives it.
struct BlockPerRowMemory {
  BlockPerRowReceiveMemory received;
  RanksOfTokens ranks;
  SendMemory send;

  static std::size_t bytes_for(int groups) {
    return offsetof(BlockPerRowMemory, send) + SendMemory::bytes_for(groups);
  }
};

struct WarpPerRowMemory {
  DispatchPipeline pipelines[kGroupsMax];
  ReceiveMemory receive;
  SendMemory send;

  static std::size_t bytes_for(int groups) {
    return offsetof(WarpPerRowMemory, send) + SendMemory::bytes_for(groups);
  }
};

static_assert(sizeof(WarpPerRowMemory) <= kSharedBytesMax);

inline __device__ RanksOfTokens* ranks_in(BlockPerRowMemory& memory) {
  return &memory.ranks;
}

inline __device__ RanksOfTokens* ranks_in(WarpPerRowMemory& /*memory*/) {
  return nullptr;
}

template <Rows kRows>
using DispatchMemory =
    std::conditional_t<kRows == Rows::WarpPerRow, WarpPerRowMemory, BlockPerRowMemory>;

template <typename Path>
__device__ Receiving<Path> receiving_of(const KernelArguments& exchange,
                                        const Dispatch& call,
                                        DispatchMemory<Path::kRows>& memory,
                                        const Call& entered) {
  if constexpr (Path::kRows == Rows::WarpPerRow) {
    return {exchange,         call,    memory.receive,        entered,
            memory.pipelines, nullptr, ByBulk(exchange, call)};
  } else {
    return {exchange, call, memory.received.receive, entered, nullptr, memory.received.tails[0]};
  }
}

// Whether rows for this rank itself skip its memory, and others' are laid out while the own ones
// are sent, because the link is slower than few multiprocessors. Where rows begin is known when all
// headers are here, for which few rows would wait too long, and ranks that may be masked are not
// waited for before all rows are on their way.
template <Rows kRows>
__device__ bool lays_out_own(const KernelArguments& exchange, const Dispatch& call) {
  return kRows == Rows::WarpPerRow && call.phases.sends && call.phases.receives &&
         !exchange.masks && !is_in_place(exchange.layout);
}

// All threads of the grid, whose send is done or under way. `has_begun`: behind begin_rows, and own
// rows are laid out.
template <typename Path>
__device__ void receive(const Receiving<Path>& receiving, bool has_begun) {
  const KernelArguments& exchange = receiving.exchange;
  if (Path::kRows == Rows::BlockPerRow) {
    advance(exchange, receiving.entered, &exchange.state->dispatches,
            Path::kPolls ? kWarp - 1 : kThreads - 1);
  }
  if (!has_begun) {
    begin_rows(receiving);
  }
  receive_rows(order_of(receiving, !has_begun));
  if constexpr (Path::kPolls) {
    if (blockIdx.x == 0) {  // it has read all headers
      end_polled(exchange, receiving.entered, false);
    }
  }
  finish(exchange);
}

template <Making kMaking, typename Path>
__global__ void __launch_bounds__(kThreads, 1)
    dispatch_kernel(const __grid_constant__ KernelArguments exchange,
                    const __grid_constant__ Dispatch call) {
  constexpr Rows kRows = Path::kRows;
  extern __shared__ __align__(kBulkAlignment) std::byte memory[];
  auto& shared = *reinterpret_cast<DispatchMemory<kRows>*>(memory);
  auto upcoming = [&] {
    if constexpr (kRows == Rows::BlockPerRow) {
      return Upcoming<kMaking>(exchange, call, shared.send.group());
    } else {
      return 0;
    }
  }();
  await_kernel_before();
  const Entry entry(exchange, WEFT_MOE_DISPATCH, &exchange.state->dispatches);
  Ids ids{};
  if constexpr (kRows == Rows::WarpPerRow) {
    if (thread_of_block() == 0) {
      shared.receive.drawn = 0;
    }
  }
  if (call.phases.sends) {
    if constexpr (kRows == Rows::BlockPerRow) {
      upcoming.begin(exchange, call, Group::index());
    }
    ids = begin_ids<Path>(exchange, call, shared.send, ranks_in(shared));
  }
  const Call entered = entry.call();
  if constexpr (kRows == Rows::WarpPerRow) {
    BulkPipeline<DispatchPipeline>(shared.pipelines[Group::number()]).begin();
  }
  const auto receiving = receiving_of<Path>(exchange, call, shared, entered);
  if (call.phases.sends) {
    send_headers<Path>(exchange, call, ids, shared.send, entered.number, entered.missing);
  }
  const bool lays_out = lays_out_own<kRows>(exchange, call);
  if (kRows == Rows::WarpPerRow && call.phases.receives) {
    advance(exchange, entered, &exchange.state->dispatches);
  }
  if constexpr (kRows == Rows::BlockPerRow) {
    if (call.phases.sends) {
      send_few_rows<kMaking, Path>({receiving, ids, false, {}}, shared.send, upcoming);
      if constexpr (Path::kPolls) {
        tell_put_back(exchange, entered.number);
      }
    }
  } else if (lays_out) {
    begin_rows(receiving);
    send_many_rows<Path>({receiving, ids, true, {}}, shared.send, kSenders);
  } else if (call.phases.sends) {
    send_many_rows<Path>({receiving, ids, false, {}}, shared.send, kGroupsMax);
    __syncthreads();
  }
  if (call.phases.receives) {
    receive(receiving, lays_out);
  }
  if (kRows == Rows::WarpPerRow && lane() == 0) {
    await_bulk_stores();
  }
}

// A rank that cannot take part says so, and waits for the others as a receive does.
__global__ void __launch_bounds__(kThreads)
    refuse_kernel(const __grid_constant__ KernelArguments exchange, std::uint32_t step) {
  await_kernel_before();
  const Shape& shape = exchange.shape;
  const bool is_dispatch = step == WEFT_MOE_DISPATCH;
  State& state = *exchange.state;
  std::uint64_t* done = is_dispatch ? &state.dispatches : &state.combines;
  const Call call = Entry(exchange, static_cast<weft_moe_step>(step), done).call();
  advance(exchange, call, done);
  const std::uint64_t number = call.number;
  const auto me = static_cast<std::uint32_t>(exchange.me);
  if (shape.polls && is_dispatch) {
    tell_put_back(exchange, number);
  }
  for (std::uint32_t rank = 0; rank < shape.ranks(); ++rank) {
    const std::uint32_t parcels =
        is_dispatch ? 1 + static_cast<std::uint32_t>(shape.map.count_of(static_cast<int>(rank)))
                    : 1;
    for (std::uint32_t i = thread_of_block(); i < parcels && !is_missing(exchange, rank);
         i += kThreads) {
      const std::uint64_t data = i == 0 ? packed({-1, kRefused}) : 0;
      if (!is_dispatch) {
        // SYNC moe-polled-partial-sums (pairs with moe/src/gpu/kernels/partial_sums.cuh): as in
        // send_combine_headers.
        device::fence_release();
        send_parcel_to(exchange, rank, shape.combine_header_at(number, me), data, number);
      } else if (is_remote(exchange, rank)) {
        stage_parcel(exchange, Staging{shape}.counts_at(number, rank), i, data, number);
      } else {
        send_parcel(exchange.memory[rank] + shape.count_at(number, me, i), data, number);
      }
    }
    __syncthreads();
    if (is_dispatch && is_remote(exchange, rank) && !is_missing(exchange, rank) &&
        thread_of_block() == 0) {
      post_counts(exchange, rank, parcels, number);
    }
  }
  if (const std::uint32_t rank = thread_of_block();
      rank < shape.ranks() && !is_missing(exchange, rank)) {
    const std::byte* from = mine(exchange) + (is_dispatch ? shape.count_at(number, rank, 0)
                                                          : shape.combine_header_at(number, rank));
    std::uint64_t data = 0;
    wait_for(exchange, call, rank, [&] { return has_parcel(from, number, data); }, never_gives_up);
    // SYNC moe-polled-partial-sums (pairs with moe/src/gpu/kernels/partial_sums.cuh): where later
    // kernels store is clear.
    device::fence_acquire();
  }
  if (shape.polls) {
    __syncthreads();
    if (is_dispatch) {
      end_polled(exchange, call, true);
    } else {
      clear_spoilt(exchange, call, true);
    }
  }
  finish(exchange);
}

using DispatchKernel = void (*)(KernelArguments, Dispatch);

template <Making kMaking, Rows kRows, bool kHasFewTokens = false, bool kPolls = false>
DispatchKernel dispatch_kernel_for(const KernelArguments& exchange) {
  return is_by_rank(exchange)
             ? &dispatch_kernel<kMaking, Path<kRows, true, kHasFewTokens, kPolls>>
             : &dispatch_kernel<kMaking, Path<kRows, false, kHasFewTokens, kPolls>>;
}

template <Making kMaking>
DispatchKernel few_rows_kernel_for(const KernelArguments& exchange, const Dispatch& call) {
  if constexpr (!kBetweenNodes) {
    const bool has_few = exchange.shape.has_few(call.tokens);
    if (exchange.shape.polls) {
      return has_few ? dispatch_kernel_for<kMaking, Rows::BlockPerRow, true, true>(exchange)
                     : dispatch_kernel_for<kMaking, Rows::BlockPerRow, false, true>(exchange);
    }
    if (has_few) {
      return dispatch_kernel_for<kMaking, Rows::BlockPerRow, true>(exchange);
    }
  }
  return dispatch_kernel_for<kMaking, Rows::BlockPerRow>(exchange);
}

template <Making kMaking, Rows kRows, bool kHasFewTokens = false, bool kPolls = false>
Loaded load_dispatch_kernels(std::size_t shared_bytes) {
  return load(shared_bytes, &dispatch_kernel<kMaking, Path<kRows, true, kHasFewTokens, kPolls>>,
              &dispatch_kernel<kMaking, Path<kRows, false, kHasFewTokens, kPolls>>);
}

template <bool kHasFewTokens, bool kPolls = false>
Loaded load_few_rows_kernels() {
  const std::size_t bytes = DispatchMemory<Rows::BlockPerRow>::bytes_for(kGroupsOfFew);
  return lesser(
      load_dispatch_kernels<Making::Copy, Rows::BlockPerRow, kHasFewTokens, kPolls>(bytes),
      lesser(
          load_dispatch_kernels<Making::Fp8, Rows::BlockPerRow, kHasFewTokens, kPolls>(bytes),
          load_dispatch_kernels<Making::Nvfp4, Rows::BlockPerRow, kHasFewTokens, kPolls>(bytes)));
}

}  // namespace

inline int dispatch(const KernelArguments& exchange,
                    const Dispatch& call,
                    Grid grid,
                    weft_stream_t stream) {
  if (call.phases.sends && counts_before(call.tokens, exchange.shape.topk)) {
    if (const int error = launch_blocks(
            &count_places, {blocks_that_count(), dim3(kThreads), sizeof(CountMemory), stream},
            exchange, call)) {
      return error;
    }
  }
  const bool is_copied = !call.phases.sends || call.type == exchange.payload;
  if constexpr (kHasWarpPerRow) {
    const bool are_counted = !call.phases.sends || counts_before(call.tokens, exchange.shape.topk);
    if (grid.groups == kGroupsMax && is_copied && are_counted && takes_many_rows() &&
        !exchange.shape.polls) {
      return launch(dispatch_kernel_for<Making::Copy, kWarpPerRow>(exchange), grid,
                    DispatchMemory<kWarpPerRow>::bytes_for(grid.groups), stream, exchange, call);
    }
  }
  const Grid by = for_few_rows(grid);
  const DispatchKernel kernel = is_copied ? few_rows_kernel_for<Making::Copy>(exchange, call)
                                : exchange.payload == WEFT_MOE_NVFP4
                                    ? few_rows_kernel_for<Making::Nvfp4>(exchange, call)
                                    : few_rows_kernel_for<Making::Fp8>(exchange, call);
  return launch(kernel, by, DispatchMemory<Rows::BlockPerRow>::bytes_for(by.groups), stream,
                exchange, call);
}

inline int refuse(const KernelArguments& exchange, weft_moe_step step, weft_stream_t stream) {
  return launch(&refuse_kernel, {1, 4}, 0, stream, exchange, static_cast<std::uint32_t>(step));
}

inline Loaded load_dispatch() {
  Loaded found = lesser(load_few_rows_kernels<false>(),
                        lesser(load(0, &refuse_kernel), load(sizeof(CountMemory), &count_places)));
  if constexpr (!kBetweenNodes) {
    found = lesser(
        found, lesser(load_few_rows_kernels<true>(), lesser(load_few_rows_kernels<true, true>(),
                                                            load_few_rows_kernels<false, true>())));
  }
  if constexpr (kHasWarpPerRow) {
    if (takes_many_rows()) {
      found = lesser(found, load_dispatch_kernels<Making::Copy, kWarpPerRow>(
                                DispatchMemory<kWarpPerRow>::bytes_for(kGroupsMax)));
    }
  }
  return found;
}

}  // namespace weft::moe::gpu::WEFT_MOE_KERNELS
