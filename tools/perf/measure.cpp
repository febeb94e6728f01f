#include "tools/perf/measure.hpp"

#include <algorithm>

#include <fmt/format.h>

#include "tools/perf/nic_counters.hpp"

namespace weft::perf {
namespace {

bool runs_free(const ExchangePlan& plan) {
  const bool is_for_two = plan.pattern == Pattern::OneWay || plan.pattern == Pattern::BothWays;
  return (is_for_two || plan.runs_free) && !plan.verifies;
}

bool has_reached(const LoopLimit& limit, std::uint64_t steps, Clock::time_point start) {
  return limit.duration_s > 0 ? seconds_since(start) >= limit.duration_s : steps >= limit.steps;
}

Steps next_window(const ExchangePlan& plan, const LoopLimit& limit, std::uint64_t done) {
  // Windows begin at multiples of their size, so that each step of one has a slot of its own.
  const std::uint64_t left = limit.duration_s > 0 ? plan.window : limit.steps - done;
  return {.first = done, .count = std::min(plan.window, left)};
}

std::uint64_t run_free(const Job& job, Exchange& exchange, const LoopLimit& limit) {
  const ExchangePlan& plan = exchange.plan();
  if (targets_of(plan.pattern, plan.world, job.me(), 0).empty()) {
    return 0;
  }
  std::uint64_t done = 0;
  const Clock::time_point start = Clock::now();
  while (!has_reached(limit, done, start)) {
    const Steps steps = next_window(plan, limit, done);
    exchange.post(steps);
    require(weft_quiet());
    done += steps.count;
  }
  return done;
}

// Returns the steps done; adds the time of each window to `seconds`.
std::uint64_t run_in_step(Job& job, Exchange& exchange, const LoopLimit& limit, double& seconds) {
  const bool verifies = exchange.plan().verifies;
  std::uint64_t done = 0;
  job.begin_loop();
  const Clock::time_point start = Clock::now();
  for (std::uint64_t round = 0;; ++round) {
    const Steps steps = next_window(exchange.plan(), limit, done);
    if (verifies) {
      exchange.prepare(steps);
      Job::barrier();
    }
    const Clock::time_point window_start = Clock::now();
    exchange.post(steps);
    done += steps.count;
    if (job.me() == 0 && has_reached(limit, done, start)) {
      job.stop_loop(round);
    }
    Job::barrier();
    seconds += seconds_since(window_start);
    if (verifies) {
      exchange.check(steps);
      Job::barrier();
    }
    if (job.is_stopped(round)) {
      return done;
    }
  }
}

// Collective.
Timing measure(Job& job, Exchange& exchange, const LoopLimit& limit) {
  exchange.reset_bytes();
  Job::barrier();
  Timing timing;
  if (runs_free(exchange.plan())) {
    const Clock::time_point start = Clock::now();
    timing.steps = run_free(job, exchange, limit);
    timing.seconds = timing.steps > 0 ? seconds_since(start) : 0;
  } else {
    timing.steps = run_in_step(job, exchange, limit, timing.seconds);
  }
  timing.bytes = exchange.posted_bytes();
  timing.remote_bytes = exchange.remote_bytes();
  Job::barrier();
  require_right(job, exchange.wrong_bytes());
  return timing;
}

// The same for a loop that counts.
Timing measure_watched(const Run& run, Exchange& exchange, const LoopLimit& limit) {
  if (run.counters == nullptr) {
    return measure(run.job, exchange, limit);
  }
  run.counters->begin_measured();
  const Timing timing = measure(run.job, exchange, limit);
  run.counters->end_measured(timing.seconds);
  return timing;
}

void warm_up(const Run& run, Exchange& exchange) {
  if (run.options.warmup_iterations > 0) {
    static_cast<void>(measure(run.job, exchange, {.steps = run.options.warmup_iterations}));
  }
}

}  // namespace

Timing measure_warm(const Run& run, Exchange& exchange) {
  warm_up(run, exchange);
  return measure_watched(run, exchange,
                         {.steps = run.options.iterations, .duration_s = run.options.duration_s});
}

MedianTiming measure_median(const Run& run, Exchange& exchange) {
  const Options& options = run.options;
  warm_up(run, exchange);
  const LoopLimit limit{.steps = options.iterations,
                        .duration_s = options.duration_s / static_cast<double>(options.repeats)};
  std::vector<Spread> repeats;
  MedianTiming median;
  for (std::uint64_t repeat = 0; repeat < options.repeats; ++repeat) {
    const Timing timing = measure_watched(run, exchange, limit);
    median.steps = timing.steps;
    const std::uint64_t steps = std::max<std::uint64_t>(timing.steps, 1);
    median.bytes_of_step = run.job.sum(timing.bytes / steps);
    std::vector<double> seconds = run.job.gather(timing.seconds / static_cast<double>(steps));
    std::erase(seconds, 0.0);  // PEs without a partner
    repeats.push_back(spread_of(seconds));
  }
  median.step_s = median_of(std::move(repeats));
  return median;
}

void require_right(Job& job, std::uint64_t wrong_bytes) {
  const std::uint64_t total = job.sum(wrong_bytes);
  if (total > 0) {
    throw JobError(
        job.me() == 0 ? fmt::format("--verify: {} bytes are wrong", total) : std::string(),
        kStatusFailure);
  }
}

}  // namespace weft::perf
