#include "tools/perf/measure.hpp"

#include <algorithm>

#include <fmt/format.h>

#include "tools/perf/nic_counters.hpp"

namespace weft::perf {
namespace {

struct Loop {
  Job& job;
  Exchange& exchange;
  LoopLimit limit;
  NicCounters* counters = nullptr;  // of a loop that counts
};

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

// Looks at the end of each step, if the loop counts. Returns the seconds that it took.
double look(NicCounters* counters) {
  return counters == nullptr ? 0 : counters->end_step();
}

// Adds the steps done, and their time without the looks.
void run_free(const Loop& loop, Timing& timing) {
  Exchange& exchange = loop.exchange;
  const ExchangePlan& plan = exchange.plan();
  if (targets_of(plan.pattern, plan.world, loop.job.me(), 0).empty()) {
    return;
  }
  double looked_s = 0;
  const Clock::time_point start = Clock::now();
  while (!has_reached(loop.limit, timing.steps, start)) {
    const Steps steps = next_window(plan, loop.limit, timing.steps);
    exchange.post(steps);
    require(weft_quiet());
    timing.steps += steps.count;
    looked_s += look(loop.counters);
  }
  timing.seconds = seconds_since(start) - looked_s;
}

// A time of this PE's own, different in each window.
void wait_apart(const Loop& loop, std::uint64_t round) {
  const ExchangePlan& plan = loop.exchange.plan();
  if (plan.start_apart_us <= 0) {
    return;
  }
  const std::uint64_t draw =
      key_of({.source = loop.job.me(), .dest = 0, .iteration = round}, plan.world.seed);
  const double wait_s = plan.start_apart_us * 1e-6 * static_cast<double>(draw % 1024) / 1024;
  for (const Clock::time_point start = Clock::now(); seconds_since(start) < wait_s;) {
  }
}

// Adds the steps done, and the time of each window.
void run_in_step(const Loop& loop, Timing& timing) {
  auto& [job, exchange, limit, counters] = loop;
  const bool verifies = exchange.plan().verifies;
  job.begin_loop();
  const Clock::time_point start = Clock::now();
  for (std::uint64_t round = 0;; ++round) {
    const Steps steps = next_window(exchange.plan(), limit, timing.steps);
    if (verifies) {
      exchange.prepare(steps);
      Job::barrier();
    }
    const Clock::time_point window_start = Clock::now();
    wait_apart(loop, round);
    exchange.post(steps);
    timing.steps += steps.count;
    if (job.me() == 0 && has_reached(limit, timing.steps, start)) {
      job.stop_loop(round);
    }
    Job::barrier();
    timing.seconds += seconds_since(window_start);
    static_cast<void>(look(counters));
    if (verifies) {
      exchange.check(steps);
      Job::barrier();
    }
    if (job.is_stopped(round)) {
      return;
    }
  }
}

// Collective.
Timing measure(const Loop& loop) {
  Exchange& exchange = loop.exchange;
  exchange.reset_bytes();
  Job::barrier();
  Timing timing;
  if (runs_free(exchange.plan())) {
    run_free(loop, timing);
  } else {
    run_in_step(loop, timing);
  }
  timing.bytes = exchange.posted_bytes();
  timing.remote_bytes = exchange.remote_bytes();
  Job::barrier();
  require_right(loop.job, exchange.wrong_bytes());
  return timing;
}

StepEnd step_end_of(const ExchangePlan& plan) {
  if (!runs_free(plan)) {
    return StepEnd::Barrier;
  }
  return plan.reads ? StepEnd::QuietAfterGets : StepEnd::QuietAfterPuts;
}

// The same for a loop that counts.
Timing measure_watched(const Run& run, Exchange& exchange, const LoopLimit& limit) {
  if (run.counters != nullptr) {
    run.counters->begin_measured(step_end_of(exchange.plan()));
  }
  const Timing timing = measure({run.job, exchange, limit, run.counters});
  if (run.counters != nullptr) {
    run.counters->end_measured(timing.seconds);
  }
  return timing;
}

void warm_up(const Run& run, Exchange& exchange) {
  if (run.options.warmup_iterations > 0) {
    static_cast<void>(measure({run.job, exchange, {.steps = run.options.warmup_iterations}}));
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
