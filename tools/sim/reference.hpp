// A table of measurements to compare with: CSV, or what weft-perf and NVSHMEM's perftest print.
//
// Plain values.
#pragma once

#include <cstdint>
#include <string>
#include <vector>

namespace weft::sim {

struct ReferenceRow {
  std::uint64_t bytes = 0;  // that a PE sends in all, NVSHMEM's size
  double value = 0;         // us, or GB/s
};

struct Reference {
  std::string file;
  bool is_bandwidth = false;
  std::vector<ReferenceRow> rows;  // rising sizes
};

// Throws Error. `filter`: empty, or COLUMN=VALUE, of the rows to take.
[[nodiscard]] Reference load_reference(const std::string& file, const std::string& filter);

// Errors of predictions, as parts of the measured values.
struct Residuals {
  double mean = 0;
  double most = 0;
  std::uint64_t at_bytes = 0;  // where it is largest
  std::size_t count = 0;

  void add(std::uint64_t bytes, double predicted, double measured);
};

}  // namespace weft::sim
