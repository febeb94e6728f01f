// put_latency (a put and its quiet) and get_latency (a get), one at a time, from PE 0 to its
// partner.
#include <fmt/format.h>

#include "tools/perf/measure.hpp"
#include "tools/perf/runs.hpp"

namespace weft::perf {
namespace {

// The tightest loop that the API allows; what stands in it is what is measured.
void repeat_put(const SymmetricBuffer& source,
                const SymmetricBuffer& dest,
                std::uint64_t count,
                int pe) {
  const std::size_t bytes = dest.bytes().size();
  for (std::uint64_t i = 0; i < count; ++i) {
    require(weft_put(dest.data(), source.data(), bytes, pe));
    require(weft_quiet());
  }
}

void repeat_get(const SymmetricBuffer& source,
                const SymmetricBuffer& dest,
                std::uint64_t count,
                int pe) {
  const std::size_t bytes = dest.bytes().size();
  for (std::uint64_t i = 0; i < count; ++i) {
    require(weft_get(dest.data(), source.data(), bytes, pe));
  }
}

// With --verify each message is looked at, and so the loop of the bandwidth tests is taken, a
// message at a time; a barrier's time is in it then.
double verified_latency(const Run& run, std::size_t size) {
  ExchangePlan plan = plan_exchange(run.job, run.options, Pattern::OneWay, size);
  plan.window = 1;
  plan.reads = run.options.reads;
  Exchange exchange(run.job, plan);
  const Timing timing = measure_warm(run, exchange);
  return timing.seconds / static_cast<double>(timing.steps);
}

double latency(const Run& run, std::size_t size) {
  const Options& options = run.options;
  const SymmetricBuffer source(size);
  const SymmetricBuffer dest(size);
  const auto repeat = options.reads ? repeat_get : repeat_put;
  const int pe = static_cast<int>(run.job.partner());
  double result = 0;
  Job::barrier();
  if (run.job.me() == 0) {
    repeat(source, dest, options.warmup_iterations, pe);
    std::uint64_t done = 0;
    const Clock::time_point start = Clock::now();
    do {
      repeat(source, dest, options.iterations, pe);
      done += options.iterations;
    } while (seconds_since(start) < options.duration_s);
    result = seconds_since(start) / static_cast<double>(done);
  }
  Job::barrier();
  return result;
}

}  // namespace

void run_latency(const Run& run) {
  run.report.header(run.name(), latency_columns());
  for (const std::size_t size : size_sequence(run.options.sizes)) {
    const double seconds = run.options.verifies ? verified_latency(run, size) : latency(run, size);
    run.report.row({fmt::format("{}", size), "None", fmt::format("{:.6f}", seconds * 1e6)},
                   {.size = size, .value = seconds * 1e6, .unit = "us"});
  }
}

}  // namespace weft::perf
