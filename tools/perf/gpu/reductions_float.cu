// Sums of float.
#include "tools/perf/gpu/reductions.cuh"

namespace weft::perf::gpu {

CollectiveKernels reductions_float(weft_reduction reduction, bool scatters) {
  return sums_of<float>(reduction, scatters);
}

}  // namespace weft::perf::gpu
