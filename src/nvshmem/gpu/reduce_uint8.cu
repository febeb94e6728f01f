// Reductions of unsigned bytes, on a stream; also those of signed ones, except min and max.
#include "src/nvshmem/gpu/reduce.cuh"

namespace weft::nvshmem::gpu {

ReduceOfType reduce_uint8() {
  return integers<std::uint8_t>();
}

}  // namespace weft::nvshmem::gpu
