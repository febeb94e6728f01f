// The loops in which an Exchange is timed.
//
// A loop runs free when a PE decides alone how long it goes on and nobody has to look at the data;
// otherwise all PEs meet in a barrier after each window. Time is taken from the first post of a
// window to the end of its quiet (free) or barrier; filling and checking are not timed.
#pragma once

#include <cstdint>

#include "tools/perf/exchange.hpp"
#include "tools/perf/job.hpp"
#include "tools/perf/runs.hpp"
#include "tools/perf/statistics.hpp"

namespace weft::perf {

struct LoopLimit {
  std::uint64_t steps = 1;
  double duration_s = 0;  // if above 0 instead of steps
};

struct Timing {
  double seconds = 0;
  std::uint64_t steps = 0;
  std::uint64_t bytes = 0;         // that this PE posted
  std::uint64_t remote_bytes = 0;  // of these to other nodes
};

// Of the repeat whose slowest PE is the median; the times are on PE 0 only.
struct MedianTiming {
  Spread step_s;                    // of one step, over the PEs that took part
  std::uint64_t bytes_of_step = 0;  // of all PEs together
  std::uint64_t steps = 0;          // of this PE
};

// First the warm-up iterations, then those that count. Collective.
[[nodiscard]] Timing measure_warm(const Run& run, Exchange& exchange);

// After a warm-up as many repeats as the options say, which share --duration. Collective.
[[nodiscard]] MedianTiming measure_median(const Run& run, Exchange& exchange);

// Throws JobError on every PE if any PE found wrong bytes. Collective.
void require_right(Job& job, std::uint64_t wrong_bytes);

}  // namespace weft::perf
