// The kernels of a dispatch, and their launches.
#include <cuda_runtime.h>

#include "src/gpu/moe/launch.cuh"
#include "src/gpu/moe/receive_rows.cuh"
#include "src/gpu/moe/send_rows.cuh"

namespace weft::gpu::moe {
namespace {

union DispatchMemory {
  SendMemory send;
  ReceiveMemory receive;
};

template <Making kMaking>
__global__ void __launch_bounds__(kThreads, 1)
    dispatch_kernel(const __grid_constant__ Exchange exchange,
                    const __grid_constant__ Dispatch call) {
  __shared__ DispatchMemory shared;
  const std::uint64_t number = exchange.state->dispatches + 1;
  if (call.phases.sends) {
    send_rows<kMaking>(exchange, call, shared.send, number);
    __syncthreads();
  }
  if (call.phases.receives) {
    receive_rows({exchange, call, shared.receive, number});
    leave(exchange, WEFT_MOE_DISPATCH, &exchange.state->dispatches, number);
  }
}

// For many tokens, before dispatch_kernel: a warp for each expert and for each rank goes through all tokens once.
__global__ void __launch_bounds__(kThreads)
    count_places(const __grid_constant__ Exchange exchange, const __grid_constant__ Dispatch call) {
  const Shape& shape = exchange.shape;
  const Ids ids{call.ids, nullptr, shape.map.experts, shape.topk};
  const auto warp = static_cast<std::int32_t>((blockIdx.x * kThreads + thread_of_block()) / kWarp);
  const bool is_rank = warp >= shape.map.experts;
  const std::int32_t first = is_rank ? shape.map.first_of(warp - shape.map.experts) : warp;
  const std::int32_t count = is_rank ? shape.map.count_of(warp - shape.map.experts) : 1;
  if (warp >= shape.map.experts + shape.map.ranks) {
    return;
  }
  std::int32_t* to = exchange.workspace + (is_rank ? 0 : shape.lanes());
  std::int32_t before = 0;
  const auto tokens = static_cast<std::uint32_t>(call.tokens);
  for (std::uint32_t begin = 0; begin < tokens; begin += kWarp) {
    const std::uint32_t token = begin + lane();
    unsigned lanes = 0;  // of the token, as bits
    for (std::uint32_t i = 0; token < tokens && i < ids.topk; ++i) {
      const std::int32_t id = ids.at(token * ids.topk + i);
      lanes |=
          static_cast<std::uint32_t>(id - first) < static_cast<std::uint32_t>(count) ? 1U << i : 0U;
    }
    const unsigned going = __ballot_sync(kAllLanes, lanes != 0);
    const std::int32_t place = before + __popc(going & ((1U << lane()) - 1));
    for (; lanes != 0; lanes &= lanes - 1) {
      to[token * ids.topk + static_cast<std::uint32_t>(__ffs(static_cast<int>(lanes)) - 1)] = place;
    }
    before += __popc(going);
  }
}

// A rank that cannot take part says so, and waits for the others as a receive does.
__global__ void __launch_bounds__(kThreads)
    refuse_kernel(const __grid_constant__ Exchange exchange, std::uint32_t step) {
  const Shape& shape = exchange.shape;
  const bool is_dispatch = step == WEFT_MOE_DISPATCH;
  State& state = *exchange.state;
  const std::uint64_t number = (is_dispatch ? state.dispatches : state.combines) + 1;
  const auto me = static_cast<std::uint32_t>(exchange.me);
  for (std::uint32_t rank = 0; rank < shape.ranks(); ++rank) {
    const std::uint32_t parcels =
        is_dispatch ? 1 + static_cast<std::uint32_t>(shape.map.count_of(static_cast<int>(rank)))
                    : 1;
    for (std::uint32_t i = thread_of_block(); i < parcels && !is_missing(exchange, rank);
         i += kThreads) {
      std::byte* to = exchange.memory[rank] +
                      (is_dispatch ? shape.count_at(number, me, i) : shape.head_at(number, me));
      send_parcel(to, i == 0 ? packed({-1, kRefused}) : 0, number);
    }
  }
  if (const std::uint32_t rank = thread_of_block();
      rank < shape.ranks() && !is_missing(exchange, rank)) {
    const std::byte* from = mine(exchange) + (is_dispatch ? shape.count_at(number, rank, 0)
                                                          : shape.head_at(number, rank));
    std::uint64_t data = 0;
    wait_for(exchange, rank, [&] { return has_parcel(from, number, data); }, [] { return false; });
  }
  leave(exchange, static_cast<weft_moe_step>(step),
        is_dispatch ? &state.dispatches : &state.combines, number);
}

}  // namespace

int dispatch(const Exchange& exchange, const Dispatch& call, Grid grid, weft_stream_t stream) {
  if (call.phases.sends && counts_before(call.tokens, exchange.shape.topk)) {
    const auto warps = static_cast<unsigned>(exchange.shape.map.experts + exchange.shape.map.ranks);
    constexpr unsigned kWarps = kThreads / kWarp;
    if (const int error =
            launch(&count_places, {static_cast<int>((warps + kWarps - 1) / kWarps), false}, stream,
                   exchange, call)) {
      return error;
    }
  }
  if (!call.phases.sends || call.type == exchange.payload) {
    return launch(&dispatch_kernel<Making::Copy>, grid, stream, exchange, call);
  }
  return exchange.payload == WEFT_MOE_NVFP4
             ? launch(&dispatch_kernel<Making::Nvfp4>, grid, stream, exchange, call)
             : launch(&dispatch_kernel<Making::Fp8>, grid, stream, exchange, call);
}

int refuse(const Exchange& exchange, weft_moe_step step, weft_stream_t stream) {
  return launch(&refuse_kernel, {1, false}, stream, exchange, static_cast<std::uint32_t>(step));
}

Loaded load_dispatch() {
  return load(&dispatch_kernel<Making::Copy>, &dispatch_kernel<Making::Fp8>,
              &dispatch_kernel<Making::Nvfp4>, &count_places, &refuse_kernel);
}

}  // namespace weft::gpu::moe
