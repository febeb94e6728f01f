// The kernels of reductions, one type a file, since each takes the compiler seconds: hence sums
// alone, and the maximum of int32 to see that nothing hangs on the operation.
// `weft-perf stream reduction` has all of them.
#pragma once

#include "tools/perf/gpu/collective.cuh"

namespace weft::perf::gpu {

template <typename T, typename Op>
struct CallReduce {
  template <typename Scope>
  static __device__ void call(const Buffers& buffers) {
    device::reduce<Scope, Op>(device::kWorld, static_cast<T*>(buffers.dest),
                              static_cast<const T*>(buffers.source), buffers.count);
  }
};

template <typename T, typename Op>
struct CallReduceScatter {
  template <typename Scope>
  static __device__ void call(const Buffers& buffers) {
    device::reduce_scatter<Scope, Op>(device::kWorld, static_cast<T*>(buffers.dest),
                                      static_cast<const T*>(buffers.source), buffers.count);
  }
};

// Sums of 32 bits in all scopes, those of 64 bits, and all reduce_scatters, in block and grid.
template <typename T>
CollectiveKernels sums_of(weft_reduction reduction, bool scatters) {
  if (reduction != WEFT_SUM) {
    return {};
  }
  if (scatters) {
    return in_wide_scopes<CallReduceScatter<T, device::Sum>>();
  }
  if constexpr (sizeof(T) == 4) {
    return in_all_scopes<CallReduce<T, device::Sum>>();
  } else {
    return in_wide_scopes<CallReduce<T, device::Sum>>();
  }
}

}  // namespace weft::perf::gpu
