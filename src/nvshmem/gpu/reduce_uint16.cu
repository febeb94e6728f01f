// Reductions of unsigned integers of two bytes, and of all where the sign does not matter, on a
// stream.
#include "src/nvshmem/gpu/reduce.cuh"

namespace weft::nvshmem::gpu {

ReduceOfType reduce_uint16() {
  return integers<std::uint16_t>();
}

}  // namespace weft::nvshmem::gpu
