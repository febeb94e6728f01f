// A job whose PEs are threads of one process, for tests.
//
// The group outlives nothing: each Bootstrap keeps what it needs. Each Bootstrap belongs to one
// thread at a time. A PE whose Bootstrap goes away (its thread threw) fails the others, none hangs.
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

  // This PE's end. Once for each PE.
  [[nodiscard]] std::unique_ptr<Bootstrap> take(Pe pe);

 private:
  struct Shared;
  friend class InProcessBootstrap;
  std::shared_ptr<Shared> shared_;
};

}  // namespace weft::bootstrap
