// message_rate: small messages by all PEs at once, to a partner or as --pattern says, windows of
// them and a quiet each. The rate of a PE is that of the slowest; all together reach at least so
// much times their number.
#include <fmt/format.h>

#include "tools/perf/measure.hpp"
#include "tools/perf/runs.hpp"

namespace weft::perf {
namespace {

Columns columns() {
  return {{"size(B)", 12}, {"scope", 10}, {"msg/s per PE", 18}, {"msg/s in all"}};
}

void run_size(const Run& run, std::size_t size) {
  const Pattern asked = run.options.pattern;
  const Pattern pattern = asked == Pattern::AllToAll ? Pattern::AllOthers : asked;
  ExchangePlan plan = plan_exchange(run.job, run.options, pattern, size);
  plan.runs_free = true;
  Exchange exchange(run.job, plan);
  const MedianTiming median = measure_median(run, exchange);
  const std::size_t posted_here = targets_of(pattern, plan.world, run.job.me(), 0).size();
  const auto messages = static_cast<double>(run.job.sum(posted_here * plan.count_per_step));
  const double in_all = median.step_s.max > 0 ? messages / median.step_s.max : 0;
  const double of_pe = in_all / static_cast<double>(run.job.pe_count());
  run.report.row({fmt::format("{}", size), "None", fmt::format("{:.0f}", of_pe),
                  fmt::format("{:.0f}", in_all)},
                 {.size = size,
                  .value = of_pe,
                  .unit = "messages/s",
                  .more = {{"messages_per_s_in_all", in_all},
                           {"iterations", median.steps},
                           {"repeats", run.options.repeats},
                           {"window", plan.window},
                           {"verified", run.options.verifies}}});
}

}  // namespace

void run_message_rate(const Run& run) {
  run.report.header("message_rate", columns());
  for (const std::size_t size : size_sequence(run.options.sizes)) {
    run_size(run, size);
  }
}

}  // namespace weft::perf
