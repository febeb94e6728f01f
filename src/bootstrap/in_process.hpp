// A job whose PEs are threads of one process, for tests.
//
// The group need not outlive its Bootstraps: each keeps the state it needs. Each Bootstrap belongs
// to one thread at a time. If a PE's Bootstrap is destroyed (its thread threw), the others fail;
// none hangs.
#pragma once

#include <chrono>
#include <memory>
#include <vector>

#include "src/bootstrap/bootstrap.hpp"

namespace weft::bootstrap {

class InProcessGroup {
 public:
  explicit InProcessGroup(std::uint32_t pe_count,
                          std::chrono::milliseconds timeout = std::chrono::seconds(30));

  // Returns this PE's Bootstrap. Once per PE.
  [[nodiscard]] std::unique_ptr<Bootstrap> take(Pe pe);

 private:
  struct Shared;
  friend class InProcessBootstrap;
  std::shared_ptr<Shared> shared_;
};

}  // namespace weft::bootstrap
