// What is said of many measured values at once.
#pragma once

#include <algorithm>
#include <numeric>
#include <vector>

namespace weft::perf {

struct Spread {
  double min = 0;
  double average = 0;
  double max = 0;
};

[[nodiscard]] inline Spread spread_of(const std::vector<double>& values) {
  if (values.empty()) {
    return {};
  }
  const auto [min, max] = std::ranges::minmax(values);
  const double sum = std::accumulate(values.begin(), values.end(), 0.0);
  return {.min = min, .average = sum / static_cast<double>(values.size()), .max = max};
}

// The lower one of the two in the middle; 0 for no values.
[[nodiscard]] inline double median_of(std::vector<double> values) {
  if (values.empty()) {
    return 0;
  }
  const auto middle = values.begin() + static_cast<std::ptrdiff_t>((values.size() - 1) / 2);
  std::ranges::nth_element(values, middle);
  return *middle;
}

// Of repeats that each have the spread of all PEs, the one whose slowest PE is the median: a row's
// numbers then belong together. Zeros for none.
[[nodiscard]] inline Spread median_of(std::vector<Spread> repeats) {
  if (repeats.empty()) {
    return {};
  }
  const auto middle = repeats.begin() + static_cast<std::ptrdiff_t>((repeats.size() - 1) / 2);
  std::ranges::nth_element(repeats, middle, {}, &Spread::max);
  return *middle;
}

}  // namespace weft::perf
