// What stands for the benchmarks of GPUs where there is no CUDA: nothing is reached behind
// weft_device_init, which says so.
#include "tools/perf/gpu/session.hpp"

namespace weft::perf::gpu {

void take_gpu(int /*index*/) {}

std::string name_of_gpu() {
  return "none";
}

void wait_for_gpu() {}

void run_bandwidth(Session& /*session*/) {}

void run_put_get_latency(Session& /*session*/) {}

void run_small(Session& /*session*/) {}

void run_ping_pong(Session& /*session*/) {}

void run_atomics(Session& /*session*/) {}

void run_collective(Session& /*session*/) {}

void run_stream_transfer(Session& /*session*/) {}

void run_stream_ping_pong(Session& /*session*/) {}

void run_stream_collective(Session& /*session*/) {}

void run_ring_rate(Session& /*session*/) {}

void run_put_signal_rate(Session& /*session*/) {}

void run_putv_rate(Session& /*session*/) {}

void run_paged_write(Session& /*session*/) {}

}  // namespace weft::perf::gpu
