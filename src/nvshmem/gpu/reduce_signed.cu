// Min and max of signed integers of one and two bytes, on a stream. The other operations do not
// depend on the sign: reduce_uint8.cu and reduce_uint16.cu.
#include "src/nvshmem/gpu/reduce.cuh"

namespace weft::nvshmem::gpu {

ReduceOfType reduce_int8() {
  return extremes<std::int8_t>();
}

ReduceOfType reduce_int16() {
  return extremes<std::int16_t>();
}

}  // namespace weft::nvshmem::gpu
