// all_get_all and all_put_all: each PE with every other; exchange_get: pairs. All PEs at once, from
// a barrier on. Aggregated: a window of steps, then one quiet; otherwise each operation waits until
// it is complete. A step's time is the longest of all PEs'; its bandwidth is that of one PE.
#include <fmt/format.h>

#include "tools/perf/measure.hpp"
#include "tools/perf/runs.hpp"

namespace weft::perf {
namespace {

// The columns of latency tables first.
Columns columns() {
  Columns columns = with_spread(latency_columns());
  columns.back().width = 14;
  columns.insert(columns.end(), {{"BW (GB/sec)", 14}, {"mode"}});
  return columns;
}

void run_size(const Run& run, std::size_t size, bool aggregates) {
  const Defaults& defaults = run.options.benchmark->defaults;
  ExchangePlan plan = plan_exchange(run.job, run.options, defaults.pattern, size);
  plan.reads = defaults.reads;
  plan.waits_for_each = !aggregates;
  plan.runs_free = true;
  Exchange exchange(run.job, plan);
  const MedianTiming median = measure_median(run, exchange);
  const double longest = median.step_s.max;
  const double bytes_of_pe =
      static_cast<double>(median.bytes_of_step) / static_cast<double>(run.job.pe_count());
  const double bandwidth = gigabytes_per_s(bytes_of_pe, longest);
  const char* mode = aggregates ? "aggregate" : "each";
  std::vector<std::string> cells{fmt::format("{}", size), "None",
                                 fmt::format("{:.6f}", longest * 1e6)};
  const std::vector<std::string> spread = spread_cells(median.step_s);
  cells.insert(cells.end(), spread.begin(), spread.end());
  cells.insert(cells.end(), {fmt::format("{:.6f}", bandwidth), mode});
  run.report.row(cells, {.size = size,
                         .value = longest * 1e6,
                         .unit = "us",
                         .more = {{"latency_min", median.step_s.min * 1e6},
                                  {"latency_avg", median.step_s.average * 1e6},
                                  {"latency_max", longest * 1e6},
                                  {"mode", mode},
                                  {"bytes_of_step", median.bytes_of_step},
                                  {"GB_per_s_of_pe", bandwidth},
                                  {"iterations", median.steps},
                                  {"repeats", run.options.repeats},
                                  {"window", plan.window},
                                  {"verified", run.options.verifies}}});
}

}  // namespace

void run_many_to_many(const Run& run) {
  run.report.header(run.name(), columns());
  for (const std::size_t size : size_sequence(run.options.sizes)) {
    for (const bool aggregates : {true, false}) {
      if (run.options.aggregates.value_or(aggregates) == aggregates) {
        run_size(run, size, aggregates);
      }
    }
  }
}

}  // namespace weft::perf
