// How even some NICs or PEs are used: the largest of their values divided by the mean. 1 is even;
// as many as there are values, all on one. nic_counters.py has the same for the tools in Python.
// Pure; C++17 and the header alone, for benchmarks of other libraries.
#pragma once

#include <algorithm>
#include <cstddef>
#include <numeric>
#include <optional>
#include <vector>

namespace weft {

// None for no values or only zeros.
template <typename Value>
[[nodiscard]] std::optional<double> max_over_mean(const std::vector<Value>& values) {
  const Value sum = std::accumulate(values.begin(), values.end(), Value{});
  if (!(sum > Value{})) {
    return std::nullopt;
  }
  const auto most = static_cast<double>(*std::max_element(values.begin(), values.end()));
  return most * static_cast<double>(values.size()) / static_cast<double>(sum);
}

// Relative to `capacities`, which are above 0, one for each value: by the part of its capacity that
// each uses, so that half the bytes on a NIC of half the rate are even.
[[nodiscard]] inline std::optional<double> max_over_mean(const std::vector<double>& values,
                                                         const std::vector<double>& capacities) {
  const double sum = std::accumulate(values.begin(), values.end(), 0.0);
  if (!(sum > 0)) {
    return std::nullopt;
  }
  double most = 0;
  for (std::size_t i = 0; i < values.size(); ++i) {
    most = std::max(most, values[i] / capacities[i]);
  }
  return most * std::accumulate(capacities.begin(), capacities.end(), 0.0) / sum;
}

}  // namespace weft
