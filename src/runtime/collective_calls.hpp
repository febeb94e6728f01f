// What every collective call of a PE does besides its own work: compare the arguments with those of
// the other PEs, synchronize, and turn a failure into an error message that names the lost PE.
//
// Threads: those of a collective call, one at a time.
#pragma once

#include <functional>
#include <string>
#include <string_view>

#include "src/base/status.hpp"
#include "src/collectives/collectives.hpp"

namespace weft::runtime {

class CollectiveCalls {
 public:
  // `lost_peers` returns the message that names the lost PE. `collectives` outlives this object.
  CollectiveCalls(collectives::Collectives& collectives, std::function<std::string()> lost_peers);

  // Throws Error for a status other than Ok. `name` is the function that the user called, here and
  // below.
  void check(Status status, std::string_view name) const;

  // Sends `mine` to all PEs. Throws Error, the same on all PEs, if they differ (Mismatch).
  void agree(std::string_view name, const collectives::CollectiveRequest& mine) const;

  // Returns when all PEs have entered. Throws Error.
  void sync(std::string_view name) const;

 private:
  collectives::Collectives& collectives_;
  std::function<std::string()> lost_peers_;
};

}  // namespace weft::runtime
