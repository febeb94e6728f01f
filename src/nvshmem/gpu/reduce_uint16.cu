// Reductions of unsigned integers of two bytes, on a stream; also those of signed ones, except min
// and max.
#include "src/nvshmem/gpu/reduce.cuh"

namespace weft::nvshmem::gpu {

ReduceOfType reduce_uint16() {
  return integers<std::uint16_t>();
}

}  // namespace weft::nvshmem::gpu
