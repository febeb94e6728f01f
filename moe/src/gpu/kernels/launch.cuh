// How the kernels of this folder are loaded and launched. Blocks have 512 threads, in the groups
// that call.cuh speaks of.
//
// The first launch of a kernel must not be its loading, which may wait for running kernels: load()
// comes before. Host code, threads: any. Errors: CUDA's as a number, 0 for none.
#pragma once

#include <cuda_runtime.h>

#include <algorithm>
#include <utility>

#include "moe/src/gpu/kernels/copy_engine.cuh"
#include "moe/src/gpu/kernels/kernels.hpp"

namespace weft::moe::gpu::WEFT_MOE_KERNELS {

// Of the GPU of this process; 0 if it cannot be request.
inline int attribute_of_gpu(cudaDeviceAttr which) {
  int device = 0;
  int value = 0;
  const bool is_known = cudaGetDevice(&device) == cudaSuccess &&
                        cudaDeviceGetAttribute(&value, which, device) == cudaSuccess;
  return is_known ? value : 0;
}

// Whether a kernel may begin when the last blocks of the one before it in the stream end, and
// graphs may hold such launches: GPUs of sm_90 with a driver of CUDA 12.3 or later. Kernels for few
// rows do so, and wait for the one before them themselves (await_kernel_before). Those for many do
// not: their gain was measured with an earlier begin alone (moe/docs/MOE_MEASUREMENTS.md).
inline bool may_overlap() {
  static const bool may = [] {
    int driver = 0;
    return cudaDriverGetVersion(&driver) == cudaSuccess && driver >= 12030 &&
           attribute_of_gpu(cudaDevAttrComputeCapabilityMajor) >= 9;
  }();
  return may;
}

// A kernel with its grid; what launch_blocks needs besides its arguments.
struct Launch {
  dim3 blocks;
  dim3 threads;
  std::size_t shared_bytes;
  weft_stream_t stream;
  bool overlaps = false;
};

template <typename... Parameters, typename... Arguments>
int launch_blocks(void (*kernel)(Parameters...), const Launch& how, Arguments&&... arguments) {
  cudaLaunchConfig_t config{};
  config.gridDim = how.blocks;
  config.blockDim = how.threads;
  config.dynamicSmemBytes = how.shared_bytes;
  config.stream = how.stream;
  cudaLaunchAttribute overlap{};
  overlap.id = cudaLaunchAttributeProgrammaticStreamSerialization;
  overlap.val.programmaticStreamSerializationAllowed = 1;
  config.attrs = &overlap;
  config.numAttrs = how.overlaps ? 1 : 0;
  return cudaLaunchKernelEx(&config, kernel, std::forward<Arguments>(arguments)...);
}

template <typename... Parameters, typename... Arguments>
int launch(void (*kernel)(Parameters...),
           Grid grid,
           std::size_t shared_bytes,
           weft_stream_t stream,
           Arguments&&... arguments) {
  const auto groups = static_cast<unsigned>(grid.groups);
  return launch_blocks(kernel,
                       {dim3(static_cast<unsigned>(grid.blocks)), dim3(kThreads / groups, groups),
                        shared_bytes, stream, grid.groups <= kGroupsOfFew && may_overlap()},
                       std::forward<Arguments>(arguments)...);
}

// The kernels for many rows, where there are any.
inline constexpr Rows kWarpPerRow = kHasWarpPerRow ? Rows::WarpPerRow : Rows::BlockPerRow;

// Whether the GPU of this process can run them: it has bulk copies, and a block has the shared
// memory for them.
inline bool takes_many_rows() {
  static const bool does = attribute_of_gpu(cudaDevAttrComputeCapabilityMajor) >= 9 &&
                           attribute_of_gpu(cudaDevAttrMaxSharedMemoryPerBlockOptin) >=
                               static_cast<int>(kSharedBytesMax);
  return does;
}

// For kernels that have no warps as groups.
inline Grid for_few_rows(Grid grid) {
  return {grid.blocks, std::min(grid.groups, kGroupsOfFew)};
}

inline Loaded lesser(const Loaded& one, const Loaded& other) {
  return {std::min(one.blocks, other.blocks), one.error == 0 ? other.error : one.error};
}

// Loads them. `shared_bytes`: the most dynamic memory of a launch.
template <typename... Kernels>
Loaded load(std::size_t shared_bytes, Kernels... kernels) {
  Loaded found;
  const auto look = [&found, shared_bytes](const void* kernel) {
    int blocks = 0;
    int error = cudaFuncSetAttribute(kernel, cudaFuncAttributeMaxDynamicSharedMemorySize,
                                     static_cast<int>(shared_bytes));
    if (error == 0) {
      error =
          cudaOccupancyMaxActiveBlocksPerMultiprocessor(&blocks, kernel, kThreads, shared_bytes);
    }
    found.error = found.error == 0 ? error : found.error;
    found.blocks = std::min(found.blocks, blocks);
  };
  (look(reinterpret_cast<const void*>(kernels)), ...);
  return found;
}

// ---- All kernels of the set, for kernels.hpp

// dispatch.cuh
inline int dispatch(const KernelArguments& exchange,
                    const Dispatch& call,
                    Grid grid,
                    weft_stream_t stream);
inline int refuse(const KernelArguments& exchange, weft_moe_step step, weft_stream_t stream);
inline Loaded load_dispatch();
// combine.cuh
inline int combine(const KernelArguments& exchange,
                   const Combine& call,
                   Grid grid,
                   weft_stream_t stream);
inline Loaded load_combine();

inline Loaded load_all() {
  const Loaded dispatch = load_dispatch();
  const Loaded combine = load_combine();
  return {std::min(dispatch.blocks, combine.blocks),
          dispatch.error == 0 ? combine.error : dispatch.error};
}

inline constexpr Kernels kKernels{&load_all, &dispatch, &combine, &refuse};

}  // namespace weft::moe::gpu::WEFT_MOE_KERNELS
