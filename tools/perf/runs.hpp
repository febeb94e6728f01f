// The functions of the benchmarks (benchmarks.cpp), each collective over all PEs. Each prints its
// table as it goes.
//
// Threads: the main one of each PE. Errors: JobError.
#pragma once

#include "tools/perf/benchmark.hpp"
#include "tools/perf/collective_shape.hpp"
#include "tools/perf/job.hpp"
#include "tools/perf/options.hpp"
#include "tools/perf/report.hpp"

namespace weft::perf {

class NicCounters;

struct Run {
  Job& job;
  const Options& options;
  Report& report;
  // Told which parts are measured, by what gives a share of the rails; none under --no-counters.
  NicCounters* counters = nullptr;

  [[nodiscard]] std::string_view name() const { return options.benchmark->name; }
};

void run_bandwidth(const Run& run);  // put_bw, get_bw
void run_latency(const Run& run);    // put_latency, get_latency
void run_put_signal_rate(const Run& run);
void run_put_signal_ping_pong(const Run& run);
void run_putv_rate(const Run& run);
void run_atomic_latency(const Run& run);
void run_barrier_latency(const Run& run);
void run_alltoall_latency(const Run& run);
void run_paged_write(const Run& run);
void run_cold_start(const Run& run);
void run_many_to_many(const Run& run);  // all_get_all, all_put_all, exchange_get
void run_message_rate(const Run& run);
void run_collective(const Run& run, Collective which);
void run_synchronization(const Run& run, Synchronization which);

}  // namespace weft::perf
