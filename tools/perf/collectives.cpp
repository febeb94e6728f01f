// alltoall, broadcast, fcollect, collect, reduction, barrier, sync: calls back to back, from a
// barrier on. A PE's time is that of its calls divided by their number; a row is the repeat whose
// slowest PE is the median. PEs that give and do not wait, such as the root of a broadcast, may run
// ahead of the others.
//
// Under --verify a call with data of its own comes before each repeat and is looked at; so is what
// stands there after the last call. Neither is timed.
#include <algorithm>
#include <cmath>

#include <fmt/format.h>

#include "tools/perf/collective_call.hpp"
#include "tools/perf/measure.hpp"
#include "tools/perf/option_names.hpp"
#include "tools/perf/reduction_values.hpp"
#include "tools/perf/runs.hpp"
#include "tools/perf/statistics.hpp"

namespace weft::perf {
namespace {

struct Measurement {
  Spread seconds;  // of one call; on PE 0
  std::uint64_t iterations = 0;
};

template <typename Call>
double time_calls(Call& call, std::uint64_t count) {
  Job::barrier();
  const Clock::time_point start = Clock::now();
  for (std::uint64_t i = 0; i < count; ++i) {
    call.call();
  }
  return seconds_since(start) / static_cast<double>(std::max<std::uint64_t>(count, 1));
}

// With --duration all PEs must make the same number of calls; PE 0 says how many.
std::uint64_t agree_on_iterations(const Run& run, double seconds_per_call) {
  const Options& options = run.options;
  if (options.duration_s <= 0) {
    return options.iterations;
  }
  const double repeat_s = options.duration_s / static_cast<double>(options.repeats);
  const double count = std::ceil(repeat_s / std::max(seconds_per_call, 1e-9));
  return run.job.sum(run.job.me() == 0 ? static_cast<std::uint64_t>(count) : 0);
}

template <typename Call>
Measurement measure_calls(const Run& run, Call& call) {
  const bool verifies = run.options.verifies;
  const std::uint64_t warmup =
      std::max<std::uint64_t>(run.options.warmup_iterations, run.options.duration_s > 0 ? 1 : 0);
  Measurement measurement{.iterations = agree_on_iterations(run, time_calls(call, warmup))};
  std::vector<Spread> repeats;
  for (std::uint64_t round = 1; round <= run.options.repeats; ++round) {
    if (verifies) {
      Job::barrier();
      call.prepare(round);
      if constexpr (Call::kNeedsBarrier) {
        Job::barrier();
      }
      call.call();
      call.check(round);
    }
    repeats.push_back(spread_of(run.job.gather(time_calls(call, measurement.iterations))));
    if (verifies) {
      call.check(round);
    }
  }
  require_right(run.job, call.wrong_bytes());
  measurement.seconds = median_of(std::move(repeats));
  return measurement;
}

nlohmann::json describe(const Run& run, const Measurement& measurement) {
  return {{"latency_min", measurement.seconds.min * 1e6},
          {"latency_avg", measurement.seconds.average * 1e6},
          {"latency_max", measurement.seconds.max * 1e6},
          {"iterations", measurement.iterations},
          {"repeats", run.options.repeats},
          {"verified", run.options.verifies}};
}

void append(std::vector<std::string>& cells, std::vector<std::string> more) {
  cells.insert(cells.end(), more.begin(), more.end());
}

void run_size(const Run& run, Collective which, std::size_t size, weft_reduction reduction) {
  const Options& options = run.options;
  const CollectiveShape shape = shape_for(which, run.job.pe_count(), options.type.bytes, size);
  if (shape.count == 0) {
    return;  // less than an element for each PE: no row
  }
  CollectiveCall call(run.job, shape, options.type.type, reduction);
  const Measurement measurement = measure_calls(run, call);
  const double longest = measurement.seconds.max;
  const double algorithm = gigabytes_per_s(static_cast<double>(shape.dest_bytes()), longest);
  const double bus = algorithm * bus_factor(which, run.job.pe_count());
  std::vector<std::string> cells{fmt::format("{}", size),
                                 fmt::format("{}", shape.count),
                                 width_of(options.type),
                                 "None",
                                 fmt::format("{:.6f}", longest * 1e6),
                                 fmt::format("{:.3f}", algorithm),
                                 fmt::format("{:.3f}", bus)};
  append(cells, spread_cells(measurement.seconds));
  nlohmann::json more = describe(run, measurement);
  more.update(
      {{"count", shape.count}, {"type", options.type.name}, {"algbw", algorithm}, {"busbw", bus}});
  if (which == Collective::Reduction) {
    cells.emplace_back(name_of(reduction));
    more["reduction"] = name_of(reduction);
  }
  run.report.row(cells,
                 {.size = size, .value = longest * 1e6, .unit = "us", .more = std::move(more)});
}

Columns columns_for(Collective collective) {
  Columns columns = with_spread(alltoall_columns());
  if (collective == Collective::Reduction) {
    columns.back().width = 14;
    columns.push_back({"redop"});
  }
  return columns;
}

std::vector<weft_reduction> reductions_of(const Options& options) {
  std::vector<weft_reduction> reductions;
  for (int value = WEFT_AND; value <= WEFT_PROD; ++value) {
    const auto reduction = static_cast<weft_reduction>(value);
    if (options.reduction ? *options.reduction == reduction
                          : is_allowed(reduction, options.type.type)) {
      reductions.push_back(reduction);
    }
  }
  return reductions;
}

}  // namespace

void run_collective(const Run& run, Collective which) {
  run.report.header(run.name(), columns_for(which));
  const std::vector<weft_reduction> reductions =
      which == Collective::Reduction ? reductions_of(run.options) : std::vector{WEFT_SUM};
  for (const weft_reduction reduction : reductions) {
    for (const std::size_t size : size_sequence(run.options.sizes)) {
      run_size(run, which, size, reduction);
    }
  }
}

void run_synchronization(const Run& run, Synchronization which) {
  run.report.header(run.name(), with_spread(latency_columns()));
  BarrierCall call(run.job, which);
  const Measurement measurement = measure_calls(run, call);
  const double longest = measurement.seconds.max * 1e6;
  std::vector<std::string> cells{"0", "None", fmt::format("{:.6f}", longest)};
  append(cells, spread_cells(measurement.seconds));
  run.report.row(cells,
                 {.size = 0, .value = longest, .unit = "us", .more = describe(run, measurement)});
}

}  // namespace weft::perf
