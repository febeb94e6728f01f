// Reductions on a stream: uint32_t; also operations that do not depend on the sign.
#include "src/gpu/on_stream/reduce.cuh"

namespace weft::gpu::on_stream {

ReduceOfType reduce_uint32() {
  return integers<std::uint32_t>();
}

}  // namespace weft::gpu::on_stream
