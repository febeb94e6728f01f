// Reductions of elements of 1 and 2 bytes on a stream, by one block: what
// weft_team_reduce_on_stream does not have. One file for each type instantiates them, since each
// kernel takes seconds to compile.
//
// Threads: any. Errors: CUDA's as a number, 0 for none.
#pragma once

#include <weft/device.cuh>

#include <weft_nvshmem/core.cuh>

#include "src/nvshmem/gpu.hpp"
#include "src/nvshmem/gpu/reductions.hpp"

namespace weft::nvshmem::gpu {

namespace ours = ::weft_nvshmem;

inline constexpr int kReduceThreads = 512;

template <typename Op, typename T>
__global__ void __launch_bounds__(kReduceThreads, 1)
    reduce_kernel(device::Team team, device::detail::ReduceCall<T> call) {
  device::detail::reduce<device::Block, Op, T>(team, call);
}

template <typename Op, typename T>
int launch_reduce(const Reduction& what, cudaStream_t stream) {
  const device::detail::ReduceCall<T> call{
      static_cast<T*>(what.dest), static_cast<const T*>(what.source), what.count,
      what.scatters ? what.count : 0,
      what.scatters ? device::OperationName::ReduceScatter : device::OperationName::Reduce};
  reduce_kernel<Op, T><<<1, kReduceThreads, 0, stream>>>(device::Team{what.team}, call);
  return cudaGetLastError();
}

// Min and max.
template <typename T>
int launch_extreme(const Reduction& what, cudaStream_t stream) {
  return what.operation == Operation::Min ? launch_reduce<ours::Min, T>(what, stream)
                                          : launch_reduce<ours::Max, T>(what, stream);
}

// The operations that all types have.
template <typename T>
int launch_arithmetic(const Reduction& what, cudaStream_t stream) {
  switch (what.operation) {
    case Operation::Sum:
      return launch_reduce<ours::Sum, T>(what, stream);
    case Operation::Prod:
      return launch_reduce<ours::Prod, T>(what, stream);
    default:
      return launch_extreme<T>(what, stream);
  }
}

template <typename T>
int launch_integer(const Reduction& what, cudaStream_t stream) {
  switch (what.operation) {
    case Operation::And:
      return launch_reduce<ours::And, T>(what, stream);
    case Operation::Or:
      return launch_reduce<ours::Or, T>(what, stream);
    case Operation::Xor:
      return launch_reduce<ours::Xor, T>(what, stream);
    default:
      return launch_arithmetic<T>(what, stream);
  }
}

template <typename T, typename... Ops>
int load_kernels_of() {
  int error = 0;
  const auto load = [&error](const void* kernel) {
    cudaFuncAttributes attributes{};
    const int result = cudaFuncGetAttributes(&attributes, kernel);
    error = error == 0 ? result : error;
  };
  (load(reinterpret_cast<const void*>(&reduce_kernel<Ops, T>)), ...);
  return error;
}

template <typename T>
ReduceOfType integers() {
  using namespace ours;
  return {&launch_integer<T>, &load_kernels_of<T, And, Or, Xor, Min, Max, Sum, Prod>};
}

template <typename T>
ReduceOfType extremes() {
  using namespace ours;
  return {&launch_extreme<T>, &load_kernels_of<T, Min, Max>};
}

template <typename T>
ReduceOfType reals() {
  using namespace ours;
  return {&launch_arithmetic<T>, &load_kernels_of<T, Min, Max, Sum, Prod>};
}

}  // namespace weft::nvshmem::gpu
