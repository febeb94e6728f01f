// The kernel of a combine by the type of its rows, and its launch.
#include <cuda_runtime.h>

#include <algorithm>

#include "src/gpu/moe/combine.cuh"
#include "src/gpu/moe/launch.cuh"

namespace weft::gpu::moe {
namespace {

template <typename Type, Reach kReach>
__global__ void __launch_bounds__(kThreads, 1)
    combine_kernel(const __grid_constant__ Exchange exchange,
                   const __grid_constant__ Combine call) {
  __shared__ CombineMemory shared;
  assume<kReach>(exchange);
  State& state = *exchange.state;
  const std::uint64_t missing = device::load_relaxed(&state.missing);
  const Call entered = enter(exchange, WEFT_MOE_COMBINE, &state.combines, call.phases.receives);
  const Combining combining{exchange, call, shared, entered, missing};
  if (call.phases.sends) {
    send_answers<Type>(combining);
    __syncthreads();
  }
  if (call.phases.receives) {
    receive_answers<Type>(combining);
  }
}

using Kernel = void (*)(Exchange, Combine);

template <Reach kReach>
Kernel kernel_of(weft_moe_type type) {
  switch (type) {
    case WEFT_MOE_F16:
      return &combine_kernel<F16, kReach>;
    case WEFT_MOE_F32:
      return &combine_kernel<Plain<float>, kReach>;
    case WEFT_MOE_F64:
      return &combine_kernel<Plain<double>, kReach>;
    default:
      return &combine_kernel<Bf16, kReach>;
  }
}

template <Reach kReach>
Loaded load_all() {
  return load(&combine_kernel<Bf16, kReach>, &combine_kernel<F16, kReach>,
              &combine_kernel<Plain<float>, kReach>, &combine_kernel<Plain<double>, kReach>);
}

}  // namespace

int combine(const Exchange& exchange, const Combine& call, Grid grid, weft_stream_t stream) {
  const Kernel kernel = exchange.remote == 0 ? kernel_of<Reach::Node>(exchange.output)
                                             : kernel_of<Reach::All>(exchange.output);
  return launch(kernel, grid, stream, exchange, call);
}

Loaded load_combine() {
  const Loaded node = load_all<Reach::Node>();
  const Loaded all = load_all<Reach::All>();
  return {std::min(node.blocks, all.blocks), node.error == 0 ? all.error : node.error};
}

}  // namespace weft::gpu::moe
