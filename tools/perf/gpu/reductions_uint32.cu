// Sums and maxima of uint32_t.
#include "tools/perf/gpu/reductions.cuh"

namespace weft::perf::gpu {

CollectiveKernels reductions_uint32(weft_reduction reduction, bool scatters) {
  if (reduction == WEFT_MAX && !scatters) {
    return in_wide_scopes<CallReduce<std::uint32_t, device::Max>>();
  }
  return sums_of<std::uint32_t>(reduction, scatters);
}

}  // namespace weft::perf::gpu
