// Reductions on a stream: uint64_t; also operations that do not depend on the sign.
#include "src/gpu/on_stream/reduce.cuh"

namespace weft::gpu::on_stream {

ReduceOfType reduce_uint64() {
  return integers<std::uint64_t>();
}

}  // namespace weft::gpu::on_stream
