// The bytes of each NIC over a part of the run: what every PE's library and kernel counted when it
// began, taken away from what they count when it ends, put together on PE 0. Within it the loops
// that are timed are told apart: the share of the rails and what happened at each moment are of
// these alone.
#pragma once

#include <weft/weft.h>

#include <cstdint>
#include <memory>
#include <string>
#include <vector>

#include "tools/perf/balance.hpp"
#include "tools/perf/job.hpp"
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
  [[nodiscard]] BalanceReport finish() const;

 private:
  using PeerCounters =
      std::vector<std::vector<weft_peer_rail_counters>>;  // by PE, then by its rail

  // Each number since init.
  struct Snapshot {
    std::vector<weft_rail_counters> rails;
    PeerCounters peers;
    std::vector<DeviceBytes> devices;
  };

  [[nodiscard]] Snapshot take() const;
  [[nodiscard]] PeerCounters take_peers() const;
  [[nodiscard]] std::string describe_change(const Snapshot& end) const;

  Job& job_;
  std::uint64_t nic_rate_bits_per_s_;
  Snapshot begin_;
  PeerCounters measured_begin_;
  MeasuredPart measured_;
  std::unique_ptr<MomentWatch> watch_;  // if anybody looks at each moment
};

}  // namespace weft::perf
