// The lines that weft-sim prints: the columns of NVSHMEM's perftest, then what a simulator knows
// besides.
//
// Pure.
#pragma once

#include <cstdint>
#include <optional>
#include <string>
#include <string_view>

#include "tools/sim/prediction.hpp"
#include "tools/sim/reference.hpp"

namespace weft::sim {

// One row of output.
struct Line {
  std::uint64_t message_bytes = 0;
  std::string policy;
  Prediction prediction;
  std::optional<double> measured_us;
};

struct Format {
  bool is_csv = false;
  bool is_compared = false;
};

[[nodiscard]] std::string header_text(const Format& format, std::string_view title);
[[nodiscard]] std::string line_text(const Format& format, const Line& line);
[[nodiscard]] std::string residuals_text(const Residuals& residuals);

}  // namespace weft::sim
