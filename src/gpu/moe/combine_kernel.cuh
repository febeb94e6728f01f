// The kernel of a combine by the type of its rows, and its launch: what dispatch brought is answered (combine.cuh), then the
// answers for this rank's tokens are waited for and added.
//
// Host code, threads: any. Errors: CUDA's as a number, 0 for none.
#pragma once

#include <cuda_runtime.h>

#include "src/gpu/moe/combine.cuh"
#include "src/gpu/moe/launch.cuh"

namespace weft::gpu::moe::WEFT_MOE_KERNELS {
namespace {

template <typename Type, Rows kRows, Travels kAs = Travels::Rounded>
__global__ void __launch_bounds__(kThreads, 1)
    combine_kernel(const __grid_constant__ Exchange exchange,
                   const __grid_constant__ Combine call) {
  __shared__ CombineMemory shared;
  State& state = *exchange.state;
  const std::uint64_t missing = device::load_relaxed(&state.missing);
  const Call entered = enter(exchange, WEFT_MOE_COMBINE, &state.combines, call.phases.receives);
  const Combining combining{exchange, call, shared, entered, missing};
  if (call.phases.sends) {
    send_answers<Type, kRows, kAs>(combining);
    __syncthreads();
  }
  if (call.phases.receives) {
    receive_answers<Type, kRows, kAs>(combining);
  }
}

using Kernel = void (*)(Exchange, Combine);

inline Kernel kernel_of(weft_moe_type type) {
  switch (type) {
    case WEFT_MOE_F16:
      return &combine_kernel<F16, Rows::Few>;
    case WEFT_MOE_F32:
      return &combine_kernel<Plain<float>, Rows::Few>;
    case WEFT_MOE_F64:
      return &combine_kernel<Plain<double>, Rows::Few>;
    default:
      return &combine_kernel<Bf16, Rows::Few>;
  }
}

inline Kernel fp8_kernel_of(weft_moe_type type) {
  switch (type) {
    case WEFT_MOE_F16:
      return &combine_kernel<F16, Rows::Few, Travels::Fp8>;
    case WEFT_MOE_F32:
      return &combine_kernel<Plain<float>, Rows::Few, Travels::Fp8>;
    default:
      return &combine_kernel<Bf16, Rows::Few, Travels::Fp8>;
  }
}

}  // namespace

inline int combine(const Exchange& exchange, const Combine& call, Grid grid, weft_stream_t stream) {
  if (call.precision == WEFT_MOE_FP8) {
    return launch(fp8_kernel_of(exchange.output), for_few_rows(grid), 0, stream, exchange, call);
  }
  if constexpr (kHasManyRows) {
    if (grid.groups == kGroupsMax && exchange.output == WEFT_MOE_BF16) {
      return launch(&combine_kernel<Bf16, kManyRows>, grid, 0, stream, exchange, call);
    }
  }
  return launch(kernel_of(exchange.output), for_few_rows(grid), 0, stream, exchange, call);
}

inline Loaded load_combine() {
  Loaded found =
      load(0, &combine_kernel<Bf16, Rows::Few>, &combine_kernel<F16, Rows::Few>,
           &combine_kernel<Plain<float>, Rows::Few>, &combine_kernel<Plain<double>, Rows::Few>);
  found = lesser(found, load(0, &combine_kernel<Bf16, Rows::Few, Travels::Fp8>,
                             &combine_kernel<F16, Rows::Few, Travels::Fp8>,
                             &combine_kernel<Plain<float>, Rows::Few, Travels::Fp8>));
  if constexpr (kHasManyRows) {
    found = lesser(found, load(0, &combine_kernel<Bf16, kManyRows>));
  }
  return found;
}

}  // namespace weft::gpu::moe::WEFT_MOE_KERNELS
