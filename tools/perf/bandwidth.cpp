// put_bw and get_bw: what one PE moves to or from another, windows of nbi operations and a quiet
// each. Only data that a quiet has completed counts.
#include <fmt/format.h>

#include "tools/perf/measure.hpp"
#include "tools/perf/runs.hpp"
#include "tools/perf/statistics.hpp"

namespace weft::perf {
namespace {

std::string title_of(const Options& options) {
  return fmt::format("{}{}", options.reads ? "get_bw" : "put_bw",
                     options.bidirectional ? "_bidir" : "");
}

void run_size(const Run& run, std::size_t size) {
  const Pattern pattern = run.options.bidirectional ? Pattern::BothWays : Pattern::OneWay;
  Exchange exchange(run.job, plan_exchange(run.job, run.options, pattern, size));
  const Timing timing = measure_warm(run, exchange);
  const auto bytes = static_cast<double>(run.job.sum(timing.bytes));
  const Spread seconds = spread_of(run.job.gather(timing.seconds));
  const double bandwidth = gigabytes_per_s(bytes, seconds.max);
  run.report.row({fmt::format("{}", size), "None", fmt::format("{:.6f}", bandwidth)},
                 {.size = size,
                  .value = bandwidth,
                  .unit = "GB/s",
                  .more = {{"seconds", seconds.max},
                           {"bytes", bytes},
                           {"iterations", timing.steps},
                           {"window", exchange.plan().window}}});
}

}  // namespace

void run_bandwidth(const Run& run) {
  run.report.header(title_of(run.options), bandwidth_columns());
  for (const std::size_t size : size_sequence(run.options.sizes)) {
    run_size(run, size);
  }
}

}  // namespace weft::perf
