// Sums of double.
#include "tools/perf/gpu/reductions.cuh"

namespace weft::perf::gpu {

CollectiveKernels reductions_double(weft_reduction reduction, bool scatters) {
  return sums_of<double>(reduction, scatters);
}

}  // namespace weft::perf::gpu
