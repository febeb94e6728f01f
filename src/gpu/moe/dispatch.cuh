// The kernels of a dispatch and of a refusal, and their launches.
//
// dispatch_kernel: each token is one row for each rank that it goes to (send_rows.cuh); then the rows of all ranks are waited for
// and laid out (receive_rows.cuh). Host code, threads: any.
#pragma once

#include <cuda_runtime.h>

#include <algorithm>
#include <cstddef>
#include <type_traits>

#include "src/gpu/moe/launch.cuh"
#include "src/gpu/moe/receive_rows.cuh"
#include "src/gpu/moe/send_rows.cuh"

namespace weft::gpu::moe::WEFT_MOE_KERNELS {
namespace {

// The send is over when the receive begins.
union MemoryForFew {
  SendMemory send;
  ReceiveMemory receive;

  static std::size_t bytes_for(int groups) {
    return std::max(SendMemory::bytes_for(groups), sizeof(ReceiveMemory));
  }
};

// The send lays out rows too. Its end has the size that the launch gives it.
struct MemoryForMany {
  ReceiveMemory receive;
  SendMemory send;

  static std::size_t bytes_for(int groups) {
    return offsetof(MemoryForMany, send) + SendMemory::bytes_for(groups);
  }
};

template <Rows kRows>
using DispatchMemory = std::conditional_t<kRows == Rows::Many, MemoryForMany, MemoryForFew>;

// Whether rows for this rank itself skip its memory, and others' are laid out while the own ones are sent, because the link
// is slower than few multiprocessors. Where rows begin is known when all headers are here, for which few rows would wait too
// long, and ranks that may be masked are not waited for before all rows are on their way.
template <Rows kRows>
__device__ bool lays_out_own(const Exchange& exchange, const Dispatch& call) {
  return kRows == Rows::Many && call.phases.sends && call.phases.receives && !exchange.masks &&
         exchange.layout != WEFT_MOE_RANK_MAJOR;
}

template <Making kMaking, Rows kRows>
__global__ void __launch_bounds__(kThreads, 1)
    dispatch_kernel(const __grid_constant__ Exchange exchange,
                    const __grid_constant__ Dispatch call) {
  extern __shared__ __align__(16) std::byte memory[];
  auto& shared = *reinterpret_cast<DispatchMemory<kRows>*>(memory);
  Ids ids{};
  if (call.phases.sends) {
    ids = begin_ids(exchange, call, shared.send);
  }
  const std::uint64_t missing = device::load_relaxed(&exchange.state->missing);
  const Call entered =
      enter(exchange, WEFT_MOE_DISPATCH, &exchange.state->dispatches, call.phases.receives);
  const Receiving receiving{exchange, call, shared.receive, entered};
  if (call.phases.sends) {
    send_headers(exchange, call, ids, shared.send, entered.number, missing);
  }
  const bool lays_out = lays_out_own<kRows>(exchange, call);
  std::uint32_t next = Group::index_of_receiver(exchange.shape.ranks());
  if (lays_out) {
    begin_rows(receiving);
    TakesRows takes{order_of(receiving, false), next};
    send_rows<kMaking, kRows>({receiving, ids, missing, true, {}}, shared.send, takes);
    next = takes.next;
  } else if (call.phases.sends) {
    TakesNothing nothing;
    send_rows<kMaking, kRows>({receiving, ids, missing, false, {}}, shared.send, nothing);
    __syncthreads();
  }
  if (call.phases.receives) {
    if (!lays_out) {
      begin_rows(receiving);
    }
    receive_rows<kRows>(order_of(receiving, !lays_out), next);
    finish(exchange);
  }
}

// Ids of a tile of tokens, in shared memory, where every warp of a block looks at all of them.
constexpr std::uint32_t kTile = 8192;
constexpr std::uint32_t kCounters = 128;  // threads of a block that counts

// tile[lane of the token][token], for `some` tokens from `begin` on.
__device__ void fill_tile(std::int16_t* tile,
                          std::uint32_t step,
                          const Ids& ids,
                          std::uint32_t begin,
                          std::uint32_t some) {
  for (std::uint32_t token = threadIdx.x; token < some; token += kCounters) {
#pragma unroll 8
    for (std::uint32_t i = 0; i < ids.topk; ++i) {
      tile[i * step + token] = static_cast<std::int16_t>(ids.at((begin + token) * ids.topk + i));
    }
  }
}

// For many tokens, before dispatch_kernel: a warp for each expert and for each rank goes through all tokens once, and leaves
// slots, places and counts in the workspace.
__global__ void __launch_bounds__(kCounters)
    count_places(const __grid_constant__ Exchange exchange, const __grid_constant__ Dispatch call) {
  __shared__ std::int16_t tile[kTile];
  const Shape& shape = exchange.shape;
  const Ids ids{call.ids, nullptr, shape.map.experts, shape.topk};
  const auto warp = static_cast<std::int32_t>((blockIdx.x * kCounters + threadIdx.x) / kWarp);
  const std::int32_t rank = warp - shape.map.experts;
  const bool is_rank = rank >= 0 && rank < shape.map.ranks;
  const std::int32_t first = is_rank ? shape.map.first_of(rank) : warp;
  const auto count = static_cast<std::uint32_t>(is_rank    ? shape.map.count_of(rank)
                                                : rank < 0 ? 1
                                                           : 0);
  const Target target(exchange, static_cast<std::uint32_t>(is_rank ? rank : 0));
  std::int32_t* to = exchange.workspace + (is_rank ? 0 : shape.lanes());
  std::int32_t before = 0;
  const auto tokens = static_cast<std::uint32_t>(call.tokens);
  const std::uint32_t step = kTile / ids.topk / kWarp * kWarp;  // tokens of a tile
  for (std::uint32_t begin = 0; begin < tokens; begin += step) {
    const std::uint32_t some = min(step, tokens - begin);
    __syncthreads();
    fill_tile(tile, step, ids, begin, some);
    __syncthreads();
    for (std::uint32_t from = 0; from < some; from += kWarp) {
      const std::uint32_t token = from + lane();
      unsigned lanes = 0;  // of the token, as bits
      bool goes = false;
#pragma unroll 8
      for (std::uint32_t i = 0; i < ids.topk; ++i) {
        const std::int32_t id = token < some ? tile[i * step + token] : -1;
        lanes |= static_cast<std::uint32_t>(id - first) < count ? 1U << i : 0U;
        goes = goes || (kBetweenNodes && is_rank && target.has(id));
      }
      const unsigned going = __ballot_sync(kAllLanes, goes || lanes != 0);
      const std::int32_t place = before + __popc(going & ((1U << lane()) - 1));
      for (; lanes != 0; lanes &= lanes - 1) {
        to[(begin + token) * ids.topk +
           static_cast<std::uint32_t>(__ffs(static_cast<int>(lanes)) - 1)] = place;
      }
      before += __popc(going);
    }
  }
  if (lane() == 0 && count > 0) {
    exchange.workspace[2 * shape.lanes() + static_cast<std::uint32_t>(warp)] = before;
  }
}

// A rank that cannot take part says so, and waits for the others as a receive does.
__global__ void __launch_bounds__(kThreads)
    refuse_kernel(const __grid_constant__ Exchange exchange, std::uint32_t step) {
  const Shape& shape = exchange.shape;
  const bool is_dispatch = step == WEFT_MOE_DISPATCH;
  State& state = *exchange.state;
  const Call call = enter(exchange, static_cast<weft_moe_step>(step),
                          is_dispatch ? &state.dispatches : &state.combines, true);
  const std::uint64_t number = call.number;
  const auto me = static_cast<std::uint32_t>(exchange.me);
  for (std::uint32_t rank = 0; rank < shape.ranks(); ++rank) {
    const std::uint32_t parcels =
        is_dispatch ? 1 + static_cast<std::uint32_t>(shape.map.count_of(static_cast<int>(rank)))
                    : 1;
    for (std::uint32_t i = thread_of_block(); i < parcels && !is_missing(exchange, rank);
         i += kThreads) {
      const std::uint64_t data = i == 0 ? packed({-1, kRefused}) : 0;
      if (!is_dispatch) {
        send_parcel_to(exchange, rank, shape.head_at(number, me), data, number);
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
                                                          : shape.head_at(number, rank));
    std::uint64_t data = 0;
    wait_for(exchange, call, rank, [&] { return has_parcel(from, number, data); }, never_gives_up);
  }
  finish(exchange);
}

}  // namespace

inline int dispatch(const Exchange& exchange,
                    const Dispatch& call,
                    Grid grid,
                    weft_stream_t stream) {
  if (call.phases.sends && counts_before(call.tokens, exchange.shape.topk)) {
    const auto warps = static_cast<unsigned>(exchange.shape.map.experts + exchange.shape.map.ranks);
    constexpr unsigned kWarps = kCounters / kWarp;
    if (const int error = launch_blocks(&count_places, dim3((warps + kWarps - 1) / kWarps),
                                        dim3(kCounters), 0, stream, exchange, call)) {
      return error;
    }
  }
  const bool is_copied = !call.phases.sends || call.type == exchange.payload;
  const auto launch_it = [&](auto kernel, Grid by) {
    return launch(kernel, by, DispatchMemory<Rows::Few>::bytes_for(by.groups), stream, exchange,
                  call);
  };
  if constexpr (kHasManyRows) {
    const bool are_counted = !call.phases.sends || counts_before(call.tokens, exchange.shape.topk);
    if (grid.groups == kGroupsMax && is_copied && are_counted) {
      return launch(&dispatch_kernel<Making::Copy, kManyRows>, grid,
                    DispatchMemory<kManyRows>::bytes_for(grid.groups), stream, exchange, call);
    }
  }
  const Grid by = for_few_rows(grid);
  if (is_copied) {
    return launch_it(&dispatch_kernel<Making::Copy, Rows::Few>, by);
  }
  return exchange.payload == WEFT_MOE_NVFP4
             ? launch_it(&dispatch_kernel<Making::Nvfp4, Rows::Few>, by)
             : launch_it(&dispatch_kernel<Making::Fp8, Rows::Few>, by);
}

inline int refuse(const Exchange& exchange, weft_moe_step step, weft_stream_t stream) {
  return launch(&refuse_kernel, {1, 4}, 0, stream, exchange, static_cast<std::uint32_t>(step));
}

inline Loaded load_dispatch() {
  Loaded found = lesser(
      load(DispatchMemory<Rows::Few>::bytes_for(kGroupsOfFew),
           &dispatch_kernel<Making::Copy, Rows::Few>, &dispatch_kernel<Making::Fp8, Rows::Few>,
           &dispatch_kernel<Making::Nvfp4, Rows::Few>),
      load(0, &refuse_kernel));
  if constexpr (kHasManyRows) {
    found = lesser(found, load(DispatchMemory<kManyRows>::bytes_for(kGroupsMax),
                               &dispatch_kernel<Making::Copy, kManyRows>));
  }
  cudaFuncAttributes attributes{};  // of smaller blocks
  const int error = cudaFuncGetAttributes(&attributes, &count_places);
  found.error = found.error == 0 ? error : found.error;
  return found;
}

}  // namespace weft::gpu::moe::WEFT_MOE_KERNELS
