// Loads the kernels of this folder, and asks the GPU how many of their blocks it holds.
#include <cuda_runtime.h>

#include <algorithm>

#include "src/gpu/cuda/driver.hpp"
#include "src/gpu/moe/launch.cuh"

namespace weft::gpu::moe {

Residency residency() {
  const Loaded dispatch = load_dispatch();
  const Loaded combine = load_combine();
  check(static_cast<cudaError_t>(dispatch.error == 0 ? combine.error : dispatch.error),
        "loading the kernels of weft::moe");
  int gpu = 0;
  Residency found{std::min(dispatch.blocks, combine.blocks), 0};
  check(cudaGetDevice(&gpu), "cudaGetDevice");
  check(cudaDeviceGetAttribute(&found.processors, cudaDevAttrMultiProcessorCount, gpu),
        "cudaDeviceGetAttribute");
  return found;
}

}  // namespace weft::gpu::moe
