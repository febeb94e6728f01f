// The library's counters of this PE as columns of samples: its own rails, then those of its peers.
// Any thread may look; one at a time for each object.
#pragma once

#include <weft/weft.h>

#include <vector>

#include "tools/perf/job.hpp"
#include "tools/perf/library_intervals.hpp"

namespace weft::perf {

class LibraryCounters {
 public:
  explicit LibraryCounters(const Job& job);

  [[nodiscard]] const LibraryColumns& columns() const { return columns_; }

  // This PE's own.
  [[nodiscard]] std::vector<weft_rail_counters> rails() const;

  // In the order of the columns. A rail that the library does not count stays 0.
  [[nodiscard]] std::vector<NicBytes> read() const;

 private:
  struct PeerRails {
    int pe = 0;
    std::size_t count = 0;
  };

  std::size_t rail_count_ = 0;
  std::vector<PeerRails> peers_;  // that are reached over rails
  LibraryColumns columns_;
};

}  // namespace weft::perf
