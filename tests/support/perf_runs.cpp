// What stands for the functions of weft-perf's benchmarks where only its command line is tested:
// the registry names them, nobody calls them.
//
// Threads: none.
#include "tools/perf/runs.hpp"

namespace weft::perf {

void run_bandwidth(const Run& /*run*/) {}

void run_latency(const Run& /*run*/) {}

void run_put_signal_rate(const Run& /*run*/) {}

void run_put_signal_ping_pong(const Run& /*run*/) {}

void run_putv_rate(const Run& /*run*/) {}

void run_atomic_latency(const Run& /*run*/) {}

void run_barrier_latency(const Run& /*run*/) {}

void run_alltoall_latency(const Run& /*run*/) {}

void run_paged_write(const Run& /*run*/) {}

void run_cold_start(const Run& /*run*/) {}

void run_many_to_many(const Run& /*run*/) {}

void run_message_rate(const Run& /*run*/) {}

void run_collective(const Run& /*run*/, Collective /*which*/) {}

void run_synchronization(const Run& /*run*/, Synchronization /*which*/) {}

}  // namespace weft::perf
