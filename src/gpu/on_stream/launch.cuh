// The number of blocks of a call on a stream, and how they are launched.
//
// A collective has a block for each kBytesPerBlock that a PE receives: as parcels, that is one for
// each thread. At most half of an H200's SMs, which already saturate NVLink (docs/PERFORMANCE.md);
// the others stay available to the program's own kernels.
#pragma once

#include <weft/device.cuh>
#include <weft/device/collectives.cuh>
#include <weft/device/launch.cuh>

#include <cuda_runtime.h>

#include <algorithm>
#include <cstddef>
#include <utility>

#include "src/gpu/on_stream/kernels.hpp"

namespace weft::gpu::on_stream {

inline constexpr std::size_t kBytesPerBlock = std::size_t{4} << 10U;
inline constexpr std::size_t kBlocksMax = 64;
inline constexpr int kThreads = 512;

// `bytes` is the number of bytes that a PE receives.
inline unsigned blocks_for(std::size_t bytes) {
  if (bytes <= kBytesPerBlock) {
    return 1;
  }
  int gpu = 0;
  int processors = 1;
  if (cudaGetDevice(&gpu) != cudaSuccess ||
      cudaDeviceGetAttribute(&processors, cudaDevAttrMultiProcessorCount, gpu) != cudaSuccess) {
    return 1;  // the launch reports the error
  }
  const std::size_t wanted = (bytes + kBytesPerBlock - 1) / kBytesPerBlock;
  return static_cast<unsigned>(
      std::min({wanted, kBlocksMax, static_cast<std::size_t>(std::max(processors, 1))}));
}

template <typename... Parameters, typename... Arguments>
int launch(void (*kernel)(Parameters...),
           unsigned blocks,
           int threads,
           weft_stream_t stream,
           Arguments&&... arguments) {
  cudaLaunchConfig_t config{};
  config.gridDim = dim3(blocks);
  config.blockDim = dim3(static_cast<unsigned>(threads));
  config.stream = stream;
  return cudaLaunchKernelEx(&config, kernel, std::forward<Arguments>(arguments)...);
}

// For blocks that wait for each other, which must be co-resident. An ordinary launch of one block
// costs 0.2 us less.
template <typename... Parameters, typename... Arguments>
int launch_together(void (*kernel)(Parameters...),
                    unsigned blocks,
                    weft_stream_t stream,
                    Arguments&&... arguments) {
  if (blocks == 1) {
    return launch(kernel, blocks, kThreads, stream, std::forward<Arguments>(arguments)...);
  }
  return device::launch_collective(kernel, dim3(blocks), dim3(kThreads), 0, stream,
                                   std::forward<Arguments>(arguments)...);
}

// Returns the first error of several.
template <typename... Kernels>
int preload(Kernels... kernels) {
  int error = 0;
  const auto load = [&error](const void* kernel) {
    cudaFuncAttributes attributes{};
    const int result = cudaFuncGetAttributes(&attributes, kernel);
    error = error == 0 ? result : error;
  };
  (load(reinterpret_cast<const void*>(kernels)), ...);
  return error;
}

}  // namespace weft::gpu::on_stream
