// Host side: launches kernels whose blocks are all co-resident, as calls of grid scope require.
//
//   weft::device::launch_collective(&kernel, grid, block, 0, stream, argument...);
//
// Threads: any. Errors: CUDA's own, returned unchanged; more blocks than can be co-resident give
// cudaErrorCooperativeLaunchTooLarge. Can be captured in a CUDA graph.
#ifndef WEFT_DEVICE_LAUNCH_CUH
#define WEFT_DEVICE_LAUNCH_CUH

#include <cuda_runtime.h>

#include <cstddef>
#include <utility>

namespace weft::device {

template <typename... Parameters, typename... Arguments>
cudaError_t launch_collective(void (*kernel)(Parameters...),
                              dim3 grid,
                              dim3 block,
                              std::size_t shared_bytes,
                              cudaStream_t stream,
                              Arguments&&... arguments) {
  cudaLaunchAttribute cooperative{};
  cooperative.id = cudaLaunchAttributeCooperative;
  cooperative.val.cooperative = 1;
  cudaLaunchConfig_t config{};
  config.gridDim = grid;
  config.blockDim = block;
  config.dynamicSmemBytes = shared_bytes;
  config.stream = stream;
  config.attrs = &cooperative;
  config.numAttrs = 1;
  return cudaLaunchKernelEx(&config, kernel, std::forward<Arguments>(arguments)...);
}

// The largest grid, in blocks of `threads`, that launch_collective can start on the current GPU; 0
// on a CUDA error.
template <typename... Parameters>
int collective_grid_max(void (*kernel)(Parameters...), int threads, std::size_t shared_bytes) {
  int gpu = 0;
  int processors = 0;
  int blocks = 0;
  if (cudaGetDevice(&gpu) != cudaSuccess ||
      cudaDeviceGetAttribute(&processors, cudaDevAttrMultiProcessorCount, gpu) != cudaSuccess ||
      cudaOccupancyMaxActiveBlocksPerMultiprocessor(&blocks, kernel, threads, shared_bytes) !=
          cudaSuccess) {
    return 0;
  }
  return processors * blocks;
}

}  // namespace weft::device

#endif  // WEFT_DEVICE_LAUNCH_CUH
