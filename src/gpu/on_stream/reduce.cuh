// Reductions on a stream for one type, instantiated by the files reduce_*.cu. One file per type, since each kernel
// takes seconds to compile.
//
// Threads: any. Errors: CUDA's as a number, 0 for none.
#pragma once

#include "src/gpu/on_stream/launch.cuh"

namespace weft::gpu::on_stream {

// Both reductions in one kernel, since they differ only in the stride.
template <typename Scope, typename Op, typename T>
__global__ void __launch_bounds__(kThreads, 1)
    reduce_kernel(device::Team team, device::detail::ReduceCall<T> call) {
  device::detail::reduce<Scope, Op, T>(team, call);
}

// Sums, the most frequent reductions, have kernels of block scope for calls of one block. The others use grid scope
// with one block there, which costs a synchronization with itself.
template <typename Op>
using ScopeOfOneBlock =
    std::conditional_t<std::is_same<Op, device::Sum>::value, device::Block, device::Grid>;

template <typename Op, typename T>
int launch_reduce(const Collective& call, const ReduceOptions& options, weft_stream_t stream) {
  using One = ScopeOfOneBlock<Op>;
  const device::Team team{call.number};
  const std::size_t count = call.bytes / sizeof(T);
  const device::detail::ReduceCall<T> what{
      static_cast<T*>(call.dest), static_cast<const T*>(call.source), count,
      options.scatters ? count : 0,
      options.scatters ? device::OperationName::ReduceScatter : device::OperationName::Reduce};
  // In the parcel protocol (one block) a PE receives the whole data of all members.
  const unsigned blocks = blocks_for(call.bytes * call.size);
  return blocks == 1
             ? launch(&reduce_kernel<One, Op, T>, 1, kThreads, stream, team, what)
             : launch_together(&reduce_kernel<device::Grid, Op, T>, blocks, stream, team, what);
}

template <typename T, typename... Ops>
int preload_reduce() {
  int error = 0;
  const auto load = [&error](int result) { error = error == 0 ? result : error; };
  (load(
       preload(&reduce_kernel<device::Grid, Ops, T>, &reduce_kernel<ScopeOfOneBlock<Ops>, Ops, T>)),
   ...);
  return error;
}

// The operations that all types support.
template <typename T>
int launch_arithmetic(const Collective& call, const ReduceOptions& options, weft_stream_t stream) {
  switch (options.reduction) {
    case WEFT_MIN:
      return launch_reduce<device::Min, T>(call, options, stream);
    case WEFT_MAX:
      return launch_reduce<device::Max, T>(call, options, stream);
    case WEFT_SUM:
      return launch_reduce<device::Sum, T>(call, options, stream);
    case WEFT_PROD:
      return launch_reduce<device::Prod, T>(call, options, stream);
    case WEFT_AND:
    case WEFT_OR:
    case WEFT_XOR:
      break;
  }
  return cudaErrorInvalidValue;
}

template <typename T>
int launch_integer(const Collective& call, const ReduceOptions& options, weft_stream_t stream) {
  switch (options.reduction) {
    case WEFT_AND:
      return launch_reduce<device::And, T>(call, options, stream);
    case WEFT_OR:
      return launch_reduce<device::Or, T>(call, options, stream);
    case WEFT_XOR:
      return launch_reduce<device::Xor, T>(call, options, stream);
    case WEFT_MIN:
    case WEFT_MAX:
    case WEFT_SUM:
    case WEFT_PROD:
      break;
  }
  return launch_arithmetic<T>(call, options, stream);
}

template <typename T>
ReduceOfType integers() {
  using namespace device;
  return {&launch_integer<T>, &preload_reduce<T, And, Or, Xor, Min, Max, Sum, Prod>};
}

template <typename T>
ReduceOfType reals() {
  using namespace device;
  return {&launch_arithmetic<T>, &preload_reduce<T, Min, Max, Sum, Prod>};
}

}  // namespace weft::gpu::on_stream
