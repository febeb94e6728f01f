// What stands for the benchmarks of GPUs where there is no CUDA: nothing is reached behind
// weft_device_init, which says so.
#include "tools/perf/gpu/session.hpp"

namespace weft::perf::gpu {

void take_gpu(int /*index*/) {}

std::string name_of_gpu() {
  return "none";
}

void wait_for_gpu() {}

void run_benchmark(Session& /*session*/) {}

}  // namespace weft::perf::gpu
