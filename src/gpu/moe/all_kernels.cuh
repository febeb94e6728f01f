// All kernels of this folder, for the namespace that in_node.cu or between_nodes.cu names before it includes this. Nothing else
// includes it: launches.cu takes what it needs through kernels.hpp.
//
// Host code, threads: any. Errors: CUDA's as a number, 0 for none.
#pragma once

#include <algorithm>

#include "src/gpu/moe/combine_kernel.cuh"
#include "src/gpu/moe/dispatch.cuh"

namespace weft::gpu::moe::WEFT_MOE_KERNELS {

inline Loaded load_all() {
  const Loaded dispatch = load_dispatch();
  const Loaded combine = load_combine();
  return {std::min(dispatch.blocks, combine.blocks),
          dispatch.error == 0 ? combine.error : dispatch.error};
}

inline constexpr Kernels kKernels{&load_all, &dispatch, &combine, &refuse};

}  // namespace weft::gpu::moe::WEFT_MOE_KERNELS
