// PEs as processes that a test forks, before it has loaded anything. What fails in a PE, and what
// it writes to stderr, reaches the test; a PE that hangs is ended, and the test says where it was.
//
// Threads: run_processes by the only thread of the test; `body` by the main thread of a PE.
#pragma once

#include <functional>
#include <map>
#include <string>
#include <vector>

#include "tests/plugins/nvshmem/board.hpp"

namespace weft::plugins::nvshmem {

using Variables = std::map<std::string, std::string>;

struct PeOutcome {
  int status = 0;        // 128 + number of a signal that ended it
  std::string failures;  // of expectations and exceptions
  std::string errors;    // its stderr
};

struct ProcessesOptions {
  int pe_count = 2;
  double limit_s = 50;
  std::function<Variables(int pe)> variables;  // beside them none of WEFT_, FI_, LOOM_ or NVSHMEM_
};

// A PE fails by expectations of GoogleTest or by what it throws.
[[nodiscard]] std::vector<PeOutcome> run_processes(const ProcessesOptions& options,
                                                   const std::function<void(Board&, int pe)>& body);

// Of this process so far; "" if all expectations held.
[[nodiscard]] std::string failures_so_far();

// One failure of the test for each PE that failed.
void expect_success(const std::vector<PeOutcome>& outcomes);

}  // namespace weft::plugins::nvshmem
