// The bytes of each NIC over a part of the run: what every PE's library and kernel counted when it
// began, taken away from what they count when it ends, put together on PE 0. Within it the loops
// that are timed are told apart: the share of the rails and what happened at each moment are of
// these alone.
#pragma once

#include <cstdint>
#include <memory>
#include <string>
#include <vector>

#include "tools/perf/balance.hpp"
#include "tools/perf/job.hpp"
#include "tools/perf/kernel_counters.hpp"
#include "tools/perf/library_counters.hpp"
#include "tools/perf/moment_watch.hpp"

namespace weft::perf {

class NicCounters {
 public:
  // Begins that part. Collective. `sample_interval_ms`: between two looks at each moment, 0 for
  // none.
  explicit NicCounters(Job& job,
                       std::uint64_t sample_interval_ms = 0,
                       std::uint64_t nic_rate_bits_per_s = 0);

  // Around a loop that was timed: `seconds` of this PE. Not collective, but all PEs do so between
  // the same barriers.
  void begin_measured(StepEnd step_end);
  // After each step of it. Returns the seconds that this took, which are not the loop's.
  double end_step();
  void end_measured(double seconds);

  // Ends it; complete on PE 0, empty elsewhere. Collective. Everything must be quiet.
  [[nodiscard]] BalanceReport finish();

 private:
  // Each number since init.
  struct Snapshot {
    std::vector<weft_rail_counters> rails;
    std::vector<NicBytes> columns;  // the library's
    std::vector<NicBytes> devices;
  };

  [[nodiscard]] Snapshot take();
  [[nodiscard]] std::string describe_change(const Snapshot& end) const;

  Job& job_;
  std::uint64_t nic_rate_bits_per_s_;
  LibraryCounters library_;
  DeviceFiles devices_;
  Snapshot begin_;
  std::vector<NicBytes> measured_begin_;
  std::vector<NicBytes> measured_;  // by column
  double measured_s_ = 0;
  std::unique_ptr<MomentWatch> watch_;  // if anybody looks at each moment
};

}  // namespace weft::perf
