// Reductions on a stream: double.
#include "src/gpu/on_stream/reduce.cuh"

namespace weft::gpu::on_stream {

ReduceOfType reduce_double() {
  return reals<double>();
}

}  // namespace weft::gpu::on_stream
