// Reductions of half on a stream.
#include "src/nvshmem/gpu/reduce.cuh"

namespace weft::nvshmem::gpu {

ReduceOfType reduce_half() {
  return reals<__half>();
}

}  // namespace weft::nvshmem::gpu
