// cold_start: the first puts after init to each peer on another node (any peer if there is none), one
// at a time, against the same put in the steady state. PE 0 measures.
//
// A policy that spreads operations reaches every pair (local rail, peer's rail) within the first few;
// what they cost without warm-up is the connection. Allocation has spoken to every peer before, on one
// pair each.
#include <algorithm>

#include <fmt/format.h>

#include "tools/perf/runs.hpp"
#include "tools/perf/statistics.hpp"

namespace weft::perf {
namespace {

std::vector<double> time_puts(const SymmetricBuffer& buffer,
                              std::uint64_t count,
                              std::uint32_t pe) {
  std::vector<double> seconds;
  for (std::uint64_t i = 0; i < count; ++i) {
    const Clock::time_point start = Clock::now();
    require(weft_put(buffer.data(), buffer.data(), buffer.bytes().size(), static_cast<int>(pe)));
    require(weft_quiet());
    seconds.push_back(seconds_since(start));
  }
  return seconds;
}

struct ColdStart {
  std::vector<double> first;  // microseconds
  std::vector<double> steady;
};

void print_row(const Run& run, std::uint32_t pe, const ColdStart& times) {
  const double steady = median_of(times.steady);
  const double first = times.first.empty() ? 0 : times.first.front();
  const double worst = spread_of(times.first).max;
  const double average = spread_of(times.first).average;
  const auto times_steady = [&](double value) { return steady > 0 ? value / steady : 0; };
  run.report.row(
      {fmt::format("{}", pe), fmt::format("{}", times.first.size()), fmt::format("{:.3f}", first),
       fmt::format("{:.3f}", worst), fmt::format("{:.3f}", average), fmt::format("{:.3f}", steady),
       fmt::format("{:.2f}", times_steady(average))},
      {.size = run.options.sizes.begin,
       .value = average,
       .unit = "us",
       .more = {{"peer", pe},
                {"first", first},
                {"worst", worst},
                {"median", median_of(times.first)},
                {"steady", steady},
                {"ratio", times_steady(average)},
                {"median_ratio", times_steady(median_of(times.first))},
                {"times", times.first}}});
}

std::vector<std::uint32_t> peers_of(const Job& job) {
  std::vector<std::uint32_t> peers;
  for (std::uint32_t pe = 1; pe < job.pe_count(); ++pe) {
    if (job.node_count() == 1 || job.node_of(pe) != job.node_of(0)) {
      peers.push_back(pe);
    }
  }
  return peers;
}

std::vector<double> in_microseconds(std::vector<double> seconds) {
  std::ranges::for_each(seconds, [](double& value) { value *= 1e6; });
  return seconds;
}

}  // namespace

void run_cold_start(const Run& run) {
  run.report.header("cold_start", {{"peer", 8},
                                   {"puts", 8},
                                   {"first(us)", 14},
                                   {"worst(us)", 14},
                                   {"average(us)", 14},
                                   {"steady(us)", 14},
                                   {"average/steady"}});
  const SymmetricBuffer buffer(run.options.sizes.begin);
  for (const std::uint32_t pe : peers_of(run.job)) {
    ColdStart times;
    if (run.job.me() == 0) {
      times.first = in_microseconds(time_puts(buffer, run.options.iterations, pe));
      times.steady = in_microseconds(time_puts(buffer, run.options.warmup_iterations, pe));
    }
    Job::barrier();
    print_row(run, pe, times);
  }
}

}  // namespace weft::perf
