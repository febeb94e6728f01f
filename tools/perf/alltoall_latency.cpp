// alltoall_latency: one step of the chosen pattern, all PEs at once. A step's time is the longest
// of all PEs'. For all-to-all the row's size is what one PE has for all PEs together, its own block
// included; for other patterns it is the size of one message.
#include <fmt/format.h>

#include "tools/perf/measure.hpp"
#include "tools/perf/option_names.hpp"
#include "tools/perf/runs.hpp"
#include "tools/perf/statistics.hpp"

namespace weft::perf {
namespace {

struct Row {
  std::size_t size = 0;
  std::size_t count = 0;  // elements of one message
};

void print_row(const Run& run, const Row& row, const Timing& timing) {
  const auto steps = static_cast<double>(timing.steps);
  const Spread step = spread_of(run.job.gather(timing.seconds / steps));
  const auto bytes = static_cast<double>(run.job.sum(timing.bytes));
  const auto remote_bytes = static_cast<double>(run.job.sum(timing.remote_bytes));
  const double algorithm =
      gigabytes_per_s(bytes / steps / static_cast<double>(run.job.pe_count()), step.max);
  const double bus = is_to_all(run.options.pattern)
                         ? alltoall_bus_bandwidth(algorithm, run.job.pe_count())
                         : algorithm;
  run.report.row(
      {fmt::format("{}", row.size), fmt::format("{}", row.count), width_of(run.options.type),
       "None", fmt::format("{:.6f}", step.max * 1e6), fmt::format("{:.3f}", algorithm),
       fmt::format("{:.3f}", bus)},
      {.size = row.size,
       .value = step.max * 1e6,
       .unit = "us",
       .more = {{"latency_min", step.min * 1e6},
                {"latency_avg", step.average * 1e6},
                {"algbw", algorithm},
                {"busbw", bus},
                {"count", row.count},
                {"iterations", timing.steps},
                {"bytes", bytes},
                {"bytes_between_nodes", remote_bytes},
                {"GB_per_s_between_nodes", gigabytes_per_s(remote_bytes, step.max * steps)},
                {"verified", run.options.verifies}}});
}

}  // namespace

void run_alltoall_latency(const Run& run) {
  const Options& options = run.options;
  run.report.header("alltoall_latency", alltoall_columns());
  for (const std::size_t size : size_sequence(options.sizes)) {
    const std::size_t parts = is_to_all(options.pattern) ? run.job.pe_count() : 1;
    const std::size_t count = size / (parts * options.type.bytes);
    if (count == 0) {
      continue;  // less than an element for each PE: no row
    }
    Exchange exchange(run.job,
                      plan_exchange(run.job, options, options.pattern, count * options.type.bytes));
    print_row(run, {.size = size, .count = count}, measure_warm(run, exchange));
  }
}

}  // namespace weft::perf
