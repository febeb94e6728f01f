// Finds the kernels of a reduction by its type; one file for each type has them.
#include "src/nvshmem/gpu/reductions.hpp"

#include "src/nvshmem/gpu/kernels.hpp"

namespace weft::nvshmem::gpu {
namespace {

bool is_extreme(Operation operation) {
  return operation == Operation::Min || operation == Operation::Max;
}

ReduceOfType of(const Reduction& what) {
  switch (what.element) {
    case Element::Int8:
      return is_extreme(what.operation) ? reduce_int8() : reduce_uint8();
    case Element::Uint8:
      return reduce_uint8();
    case Element::Int16:
      return is_extreme(what.operation) ? reduce_int16() : reduce_uint16();
    case Element::Uint16:
      return reduce_uint16();
    case Element::Half:
      return reduce_half();
    default:
      return reduce_bfloat16();
  }
}

}  // namespace

int reduce(const Reduction& what, cudaStream_t stream) {
  return of(what).launch(what, stream);
}

int load_reductions() {
  int error = 0;
  for (const ReduceOfType& type : {reduce_uint8(), reduce_uint16(), reduce_int8(), reduce_int16(),
                                   reduce_half(), reduce_bfloat16()}) {
    error = error != 0 ? error : type.preload();
  }
  return error;
}

}  // namespace weft::nvshmem::gpu
