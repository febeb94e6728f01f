// The reductions of this folder by type: one file each, all of the same form (reduce.cuh). Signed
// integers have files of their own for the extremes alone, because the other operations do not
// depend on the sign.
//
// Threads: any. Errors: CUDA's as a number.
#pragma once

#include "src/nvshmem/gpu.hpp"

namespace weft::nvshmem::gpu {

struct ReduceOfType {
  int (*launch)(const Reduction& what, cudaStream_t stream);
  int (*preload)();
};

[[nodiscard]] ReduceOfType reduce_uint8();
[[nodiscard]] ReduceOfType reduce_uint16();
[[nodiscard]] ReduceOfType reduce_int8();
[[nodiscard]] ReduceOfType reduce_int16();
[[nodiscard]] ReduceOfType reduce_half();
[[nodiscard]] ReduceOfType reduce_bfloat16();

}  // namespace weft::nvshmem::gpu
