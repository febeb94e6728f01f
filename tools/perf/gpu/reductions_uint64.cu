// Sums of uint64_t.
#include "tools/perf/gpu/reductions.cuh"

namespace weft::perf::gpu {

CollectiveKernels reductions_uint64(weft_reduction reduction, bool scatters) {
  return sums_of<std::uint64_t>(reduction, scatters);
}

}  // namespace weft::perf::gpu
