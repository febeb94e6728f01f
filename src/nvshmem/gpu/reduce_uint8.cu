// Reductions of unsigned bytes, and of all bytes where the sign does not matter, on a stream.
#include "src/nvshmem/gpu/reduce.cuh"

namespace weft::nvshmem::gpu {

ReduceOfType reduce_uint8() {
  return integers<std::uint8_t>();
}

}  // namespace weft::nvshmem::gpu
