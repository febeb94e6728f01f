// Reductions of signed integers of one and two bytes: the extremes, on a stream.
#include "src/nvshmem/gpu/reduce.cuh"

namespace weft::nvshmem::gpu {

ReduceOfType reduce_int8() {
  return extremes<std::int8_t>();
}

ReduceOfType reduce_int16() {
  return extremes<std::int16_t>();
}

}  // namespace weft::nvshmem::gpu
