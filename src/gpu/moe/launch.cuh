// How the kernels of this folder are loaded and launched. Blocks have 512 threads, in the groups that exchange.cuh speaks of.
//
// The first launch of a kernel must not be its loading, which may wait for running kernels: load() comes before.
// Host code, threads: any. Errors: CUDA's as a number, 0 for none.
#pragma once

#include <cuda_runtime.h>

#include <algorithm>
#include <utility>

#include "src/gpu/moe/exchange.cuh"
#include "src/gpu/moe/kernels.hpp"

namespace weft::gpu::moe::WEFT_MOE_KERNELS {

template <typename... Parameters, typename... Arguments>
int launch_blocks(void (*kernel)(Parameters...),
                  dim3 blocks,
                  dim3 threads,
                  weft_stream_t stream,
                  Arguments&&... arguments) {
  cudaLaunchConfig_t config{};
  config.gridDim = blocks;
  config.blockDim = threads;
  config.stream = stream;
  return cudaLaunchKernelEx(&config, kernel, std::forward<Arguments>(arguments)...);
}

template <typename... Parameters, typename... Arguments>
int launch(void (*kernel)(Parameters...),
           Grid grid,
           weft_stream_t stream,
           Arguments&&... arguments) {
  const unsigned groups = grid.is_wide ? 1 : kGroupsMax;
  return launch_blocks(kernel, dim3(static_cast<unsigned>(grid.blocks)),
                       dim3(kThreads / groups, groups), stream,
                       std::forward<Arguments>(arguments)...);
}

// Loads them.
template <typename... Kernels>
Loaded load(Kernels... kernels) {
  Loaded found;
  const auto look = [&found](const void* kernel) {
    int blocks = 0;
    const int error = cudaOccupancyMaxActiveBlocksPerMultiprocessor(&blocks, kernel, kThreads, 0);
    found.error = found.error == 0 ? error : found.error;
    found.blocks = std::min(found.blocks, blocks);
  };
  (look(reinterpret_cast<const void*>(kernels)), ...);
  return found;
}

}  // namespace weft::gpu::moe::WEFT_MOE_KERNELS
