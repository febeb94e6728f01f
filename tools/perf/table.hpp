// The tables that people and scripts read: the layout of NVSHMEM's perftest, so that scripts
// written for it read these too. A table is a title line "#name", a line of column names, and rows;
// columns are padded to a fixed width, except the last.
#pragma once

#include <cstddef>
#include <string>
#include <string_view>
#include <vector>

#include "tools/perf/statistics.hpp"

namespace weft::perf {

struct Column {
  std::string_view name;
  std::size_t width = 0;  // 0: as long as it is (the last one)
};

using Columns = std::vector<Column>;

[[nodiscard]] Columns bandwidth_columns();
[[nodiscard]] Columns latency_columns();
[[nodiscard]] Columns alltoall_columns();

// The columns, and after them the mean, the shortest and the longest time of all PEs, so that what
// reads the columns before them still does.
[[nodiscard]] Columns with_spread(Columns columns);
// The cells of these three; the spread is in seconds.
[[nodiscard]] std::vector<std::string> spread_cells(const Spread& seconds);

// "#title" and the column names, two lines.
[[nodiscard]] std::string format_header(std::string_view title, const Columns& columns);
// One line; as many cells as columns.
[[nodiscard]] std::string format_row(const Columns& columns, const std::vector<std::string>& cells);

// bytes / seconds in GB/s; 1 GB is 1e9 bytes.
[[nodiscard]] double gigabytes_per_s(double bytes, double seconds);

// What the wires carry of an all-to-all between `pe_count` PEs for its algorithm bandwidth: a PE's
// own block stays where it is.
[[nodiscard]] double alltoall_bus_bandwidth(double algorithm_bandwidth, std::size_t pe_count);

}  // namespace weft::perf
