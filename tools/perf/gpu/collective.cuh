// One collective in a loop inside one kernel, in each scope: what exchanges.cu and the files of
// reductions measure. Launched by all PEs; the longest of their times is the row's.
#pragma once

#include <weft/device/collectives.cuh>

#include "tools/perf/gpu/collective_data.hpp"
#include "tools/perf/gpu/memory.cuh"

namespace weft::perf::gpu {

// As bench/peers: few iterations where one moves much.
inline std::size_t budget_of(Scope scope) {
  switch (scope) {
    case Scope::Thread:
      return std::size_t{2} << 20U;
    case Scope::Warp:
      return std::size_t{32} << 20U;
    case Scope::Block:
      return std::size_t{1} << 30U;
    case Scope::Grid:
      break;
  }
  return std::size_t{8} << 30U;
}

struct Buffers {
  void* dest;
  const void* source;
  std::size_t count;  // elements of one block
};

// Operation{}.template call<Scope>(buffers): one collective by all PEs.
template <typename Operation, typename Scope>
__global__ void __launch_bounds__(kThreadsMax / 2, 1)
    time_collective(Buffers buffers, Loop loop, Span* spans) {
  for (int i = 0; i < loop.warmup; ++i) {
    Operation::template call<Scope>(buffers);
  }
  device::barrier<Scope>(device::kWorld);
  begin_span(spans);
  for (int i = 0; i < loop.iterations; ++i) {
    Operation::template call<Scope>(buffers);
  }
  end_span(spans);
}

using CollectiveKernel = void (*)(Buffers, Loop, Span*);

// By Scope; null where there is none.
struct CollectiveKernels {
  CollectiveKernel in[kScopeCount];
};

template <typename Operation>
CollectiveKernels in_all_scopes() {
  return {{&time_collective<Operation, device::Thread>, &time_collective<Operation, device::Warp>,
           &time_collective<Operation, device::Block>, &time_collective<Operation, device::Grid>}};
}

template <typename Operation>
CollectiveKernels in_wide_scopes() {
  return {{nullptr, nullptr, &time_collective<Operation, device::Block>,
           &time_collective<Operation, device::Grid>}};
}

// All sizes in all scopes that the options ask for.
void run_plan(Session& session, const CollectivePlan& plan, const CollectiveKernels& kernels);

// ---- Of one type each, by file

[[nodiscard]] CollectiveKernels reductions_uint32(weft_reduction reduction, bool scatters);
[[nodiscard]] CollectiveKernels reductions_uint64(weft_reduction reduction, bool scatters);
[[nodiscard]] CollectiveKernels reductions_float(weft_reduction reduction, bool scatters);
[[nodiscard]] CollectiveKernels reductions_double(weft_reduction reduction, bool scatters);

}  // namespace weft::perf::gpu
