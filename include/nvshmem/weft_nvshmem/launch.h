/* Collective launches. They are compiled into the program, because a kernel is known to the CUDA
 * runtime that the program was linked with alone.
 *
 * Source: NVSHMEM's documentation, api/launch. Threads: any. */
#ifndef WEFT_NVSHMEM_LAUNCH_H
#define WEFT_NVSHMEM_LAUNCH_H

#include <weft_nvshmem/types.h>

/* The largest grid that nvshmemx_collective_launch starts on the current GPU; 0, or an error. */
static inline __attribute__((unused)) int nvshmemx_collective_launch_query_gridsize(
    const void* func, dim3 blockDims, void** args, size_t sharedMem, int* gridsize) {
  int gpu = 0;
  int processors = 0;
  int blocks = 0;
  (void)args;
  if (cudaGetDevice(&gpu) != cudaSuccess ||
      cudaDeviceGetAttribute(&processors, cudaDevAttrMultiProcessorCount, gpu) != cudaSuccess ||
      cudaOccupancyMaxActiveBlocksPerMultiprocessor(&blocks, func,
                                                    (int)(blockDims.x * blockDims.y * blockDims.z),
                                                    sharedMem) != cudaSuccess) {
    return NVSHMEMX_ERROR_INTERNAL;
  }
  *gridsize = processors * blocks;
  return NVSHMEMX_SUCCESS;
}

/* A grid of 0 blocks stands for the largest. */
static inline __attribute__((unused)) int nvshmemx_collective_launch(const void* func,
                                                                     dim3 gridDims,
                                                                     dim3 blockDims,
                                                                     void** args,
                                                                     size_t sharedMem,
                                                                     cudaStream_t stream) {
  int largest = 0;
  const int error =
      nvshmemx_collective_launch_query_gridsize(func, blockDims, args, sharedMem, &largest);
  if (error != NVSHMEMX_SUCCESS) {
    return error;
  }
  if (gridDims.x == 0 || gridDims.y == 0 || gridDims.z == 0) {
    gridDims.x = (unsigned)largest;
    gridDims.y = 1;
    gridDims.z = 1;
  }
  if ((size_t)gridDims.x * gridDims.y * gridDims.z > (size_t)largest) {
    return NVSHMEMX_ERROR_INVALID_VALUE;
  }
  return cudaLaunchCooperativeKernel(func, gridDims, blockDims, args, sharedMem, stream) ==
                 cudaSuccess
             ? NVSHMEMX_SUCCESS
             : NVSHMEMX_ERROR_INTERNAL;
}

#endif /* WEFT_NVSHMEM_LAUNCH_H */
