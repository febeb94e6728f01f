// The bytes of each NIC over a part of the run: what every PE's library and kernel counted when it
// began, taken away from what they count when it ends, put together on PE 0.
#pragma once

#include <weft/weft.h>

#include <cstdint>
#include <vector>

#include "tools/perf/balance.hpp"
#include "tools/perf/job.hpp"

namespace weft::perf {

class NicCounters {
 public:
  // Begins the measured part. Collective.
  explicit NicCounters(Job& job);

  // Ends it; complete on PE 0, empty elsewhere. Collective. Everything must be quiet.
  [[nodiscard]] BalanceReport finish() const;

 private:
  // Each number since init.
  struct Snapshot {
    std::vector<weft_rail_counters> rails;
    std::vector<std::vector<weft_peer_rail_counters>> peers;  // by PE, then by its rail
    std::vector<DeviceBytes> devices;
  };

  [[nodiscard]] Snapshot take() const;
  [[nodiscard]] std::string describe_change(const Snapshot& end) const;

  Job& job_;
  Snapshot begin_;
};

}  // namespace weft::perf
