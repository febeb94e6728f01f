// The host's part of on_stream.hpp: selects the kernel file of a reduction, and formats errors.
#include "src/gpu/on_stream.hpp"

#include "src/gpu/cuda/driver.hpp"
#include "src/gpu/on_stream/kernels.hpp"

namespace weft::gpu::on_stream {
namespace {

bool is_extreme(weft_reduction reduction) {
  return reduction == WEFT_MIN || reduction == WEFT_MAX;
}

}  // namespace

std::string words_of(int error) {
  return words(static_cast<cudaError_t>(error));
}

void preload_kernels() {
  int error = preload_data();
  error = error != 0 ? error : preload_lists();
  error = error != 0 ? error : preload_exchanges();
  for (const ReduceOfType& type :
       {reduce_uint32(), reduce_uint64(), reduce_signed(), reduce_float(), reduce_double()}) {
    error = error != 0 ? error : type.preload();
  }
  check(static_cast<cudaError_t>(error), "loading the kernels of libweft");
}

bool can_reduce(weft_type type, weft_reduction reduction) {
  const bool is_integer =
      type == WEFT_INT32 || type == WEFT_INT64 || type == WEFT_UINT32 || type == WEFT_UINT64;
  const bool is_known = reduction >= WEFT_AND && reduction <= WEFT_PROD;
  const bool is_of_bits = reduction == WEFT_AND || reduction == WEFT_OR || reduction == WEFT_XOR;
  return is_known && (is_integer || ((type == WEFT_FLOAT || type == WEFT_DOUBLE) && !is_of_bits));
}

int reduce(const StreamCollective& call, const ReduceOptions& options, weft_stream_t stream) {
  const weft_type type = options.type;
  if (type == WEFT_FLOAT) {
    return reduce_float().launch(call, options, stream);
  }
  if (type == WEFT_DOUBLE) {
    return reduce_double().launch(call, options, stream);
  }
  if ((type == WEFT_INT32 || type == WEFT_INT64) && is_extreme(options.reduction)) {
    return reduce_signed().launch(call, options, stream);
  }
  return type == WEFT_INT32 || type == WEFT_UINT32 ? reduce_uint32().launch(call, options, stream)
                                                   : reduce_uint64().launch(call, options, stream);
}

}  // namespace weft::gpu::on_stream
