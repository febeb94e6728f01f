// cold_start: the first puts after init to each peer on another node (any peer if there is none),
// one at a time, against the same put in the steady state. PE 0 measures.
//
// The memory that is put to must be allocated first, and allocation speaks to every peer: it may
// open all connections that the policy uses. So a second table shows the first allocation after
// init against later ones, and the column "opened" how many of the peer's rails had been written to
// before the puts.
#include <algorithm>
#include <array>

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

// How many rails of `pe` this PE has written to.
std::size_t opened_rails(std::uint32_t pe) {
  std::array<weft_peer_rail_counters, 32> rails{};
  const int count = weft_peer_counters(static_cast<int>(pe), rails.data(), rails.size());
  return static_cast<std::size_t>(
      std::count_if(rails.begin(), rails.begin() + std::max(count, 0),
                    [](const auto& rail) { return rail.put_bytes > 0; }));
}

struct ColdStart {
  std::size_t opened = 0;
  std::vector<double> first;  // microseconds
  std::vector<double> steady;
};

void print_row(const Run& run, std::uint32_t pe, const ColdStart& times) {
  const double steady = median_of(times.steady);
  const double first = times.first.empty() ? 0 : times.first.front();
  const Spread spread = spread_of(times.first);
  const auto times_steady = [&](double value) { return steady > 0 ? value / steady : 0; };
  run.report.row(
      {fmt::format("{}", pe), fmt::format("{}", times.first.size()),
       fmt::format("{}", times.opened), fmt::format("{:.3f}", first),
       fmt::format("{:.3f}", spread.max), fmt::format("{:.3f}", spread.average),
       fmt::format("{:.3f}", steady), fmt::format("{:.2f}", times_steady(spread.average))},
      {.size = run.options.sizes.begin,
       .value = spread.average,
       .unit = "us",
       .more = {{"peer", pe},
                {"warmup", run.options.warms_up.value_or(true)},
                {"rails_opened_before", times.opened},
                {"first", first},
                {"worst", spread.max},
                {"median", median_of(times.first)},
                {"steady", steady},
                {"ratio", times_steady(spread.average)},
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

constexpr int kLaterAllocations = 21;

// Collective. All PEs have just met when they allocate, here as after init.
void compare_allocations(const Run& run) {
  std::vector<double> later;
  for (int i = 0; i < kLaterAllocations; ++i) {
    Job::barrier();
    const Clock::time_point start = Clock::now();
    const SymmetricBuffer buffer(run.options.sizes.begin);
    later.push_back(seconds_since(start) * 1e6);
  }
  const double first = run.job.first_allocation_s() * 1e6;
  const double steady = median_of(later);
  run.report.header("cold_start_allocation",
                    {{"first(us)", 14}, {"steady(us)", 14}, {"first/steady"}});
  run.report.row({fmt::format("{:.3f}", first), fmt::format("{:.3f}", steady),
                  fmt::format("{:.2f}", first / steady)},
                 {.size = run.options.sizes.begin,
                  .value = first,
                  .unit = "us",
                  .more = {{"steady", steady}, {"ratio", first / steady}, {"times", later}}});
}

}  // namespace

void run_cold_start(const Run& run) {
  run.report.header("cold_start", {{"peer", 8},
                                   {"puts", 8},
                                   {"opened", 8},
                                   {"first(us)", 14},
                                   {"worst(us)", 14},
                                   {"average(us)", 14},
                                   {"steady(us)", 14},
                                   {"average/steady"}});
  const SymmetricBuffer buffer(run.options.sizes.begin);
  for (const std::uint32_t pe : peers_of(run.job)) {
    ColdStart times;
    if (run.job.me() == 0) {
      times.opened = opened_rails(pe);
      times.first = in_microseconds(time_puts(buffer, run.options.iterations, pe));
      times.steady = in_microseconds(time_puts(buffer, run.options.warmup_iterations, pe));
    }
    Job::barrier();
    print_row(run, pe, times);
  }
  compare_allocations(run);
}

}  // namespace weft::perf
