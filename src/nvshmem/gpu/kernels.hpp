// Between the files of this folder: what of gpu.hpp takes more than a launch, and the kernels to
// load before others run.
//
// Threads: any. Errors: CUDA's as a number.
#pragma once

#include <cuda_runtime.h>

#include <cstddef>

namespace weft::nvshmem::gpu {

// `page` is pinned memory of 8 bytes.
[[nodiscard]] int enqueue_get_value(
    void* page, const void* source, std::size_t bytes, int pe, cudaStream_t stream);

// A part of load_kernels.
[[nodiscard]] int load_reductions();

}  // namespace weft::nvshmem::gpu
