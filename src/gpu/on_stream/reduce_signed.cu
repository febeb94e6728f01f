// Reductions on a stream: operations that depend on the sign of an integer.
#include "src/gpu/on_stream/reduce.cuh"

namespace weft::gpu::on_stream {
namespace {

template <typename T>
int launch_extreme(const StreamCollective& call,
                   const ReduceOptions& options,
                   weft_stream_t stream) {
  return options.reduction == WEFT_MIN ? launch_reduce<device::Min, T>(call, options, stream)
                                       : launch_reduce<device::Max, T>(call, options, stream);
}

int launch_signed(const StreamCollective& call,
                  const ReduceOptions& options,
                  weft_stream_t stream) {
  return options.type == WEFT_INT32 ? launch_extreme<std::int32_t>(call, options, stream)
                                    : launch_extreme<std::int64_t>(call, options, stream);
}

int preload_signed() {
  const int error = preload_reduce<std::int32_t, device::Min, device::Max>();
  return error != 0 ? error : preload_reduce<std::int64_t, device::Min, device::Max>();
}

}  // namespace

ReduceOfType reduce_signed() {
  return {&launch_signed, &preload_signed};
}

}  // namespace weft::gpu::on_stream
