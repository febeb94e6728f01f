// Reductions of bfloat16 on a stream.
#include "src/nvshmem/gpu/reduce.cuh"

namespace weft::nvshmem::gpu {

ReduceOfType reduce_bfloat16() {
  return reals<__nv_bfloat16>();
}

}  // namespace weft::nvshmem::gpu
