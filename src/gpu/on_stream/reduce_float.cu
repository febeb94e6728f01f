// Reductions on a stream: float.
#include "src/gpu/on_stream/reduce.cuh"

namespace weft::gpu::on_stream {

ReduceOfType reduce_float() {
  return reals<float>();
}

}  // namespace weft::gpu::on_stream
