// barrier_latency: weft_barrier_all with nothing outstanding, and weft_sync_all.
#include <fmt/format.h>

#include "tools/perf/runs.hpp"
#include "tools/perf/statistics.hpp"

namespace weft::perf {
namespace {

void measure_one(const Run& run, const char* name, int (*call)()) {
  const auto repeat = [&](std::uint64_t count) {
    for (std::uint64_t i = 0; i < count; ++i) {
      require(call());
    }
  };
  repeat(run.options.warmup_iterations);
  Job::barrier();
  const Clock::time_point start = Clock::now();
  repeat(run.options.iterations);
  const double seconds = seconds_since(start) / static_cast<double>(run.options.iterations);
  const Spread spread = spread_of(run.job.gather(seconds));
  run.report.row(
      {fmt::format("{}", run.job.pe_count()), name, fmt::format("{:.6f}", spread.max * 1e6)},
      {.size = 0,
       .value = spread.max * 1e6,
       .unit = "us",
       .more = {{"call", name},
                {"latency_min", spread.min * 1e6},
                {"latency_avg", spread.average * 1e6}}});
}

}  // namespace

void run_barrier_latency(const Run& run) {
  run.report.header("barrier_latency", {{"PEs", 12}, {"call", 16}, {"latency(us)"}});
  measure_one(run, "barrier_all", weft_barrier_all);
  measure_one(run, "sync_all", weft_sync_all);
}

}  // namespace weft::perf
