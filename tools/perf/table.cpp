#include "tools/perf/table.hpp"

#include <fmt/format.h>

namespace weft::perf {
namespace {

void append_cell(std::string& line, const Column& column, std::string_view text) {
  if (column.width == 0) {
    line += text;
  } else if (text.size() < column.width) {
    line += fmt::format("{:<{}}", text, column.width);
  } else {
    line += fmt::format("{} ", text);  // too long for its column: still separated
  }
}

}  // namespace

Columns bandwidth_columns() {
  return {{"size(B)", 12}, {"scope", 10}, {"BW (GB/sec)"}};
}

Columns latency_columns() {
  return {{"size(B)", 12}, {"scope", 10}, {"latency(us)"}};
}

Columns alltoall_columns() {
  return {{"size(B)", 12},     {"count", 10},       {"type", 10},   {"scope", 10},
          {"latency(us)", 18}, {"algbw(GB/s)", 14}, {"busbw(GB/s)"}};
}

Columns with_spread(Columns columns) {
  columns.back().width = 14;
  columns.insert(columns.end(), {{"avg(us)", 14}, {"min(us)", 14}, {"max(us)"}});
  return columns;
}

std::vector<std::string> spread_cells(const Spread& seconds) {
  return {fmt::format("{:.6f}", seconds.average * 1e6), fmt::format("{:.6f}", seconds.min * 1e6),
          fmt::format("{:.6f}", seconds.max * 1e6)};
}

std::string format_header(std::string_view title, const Columns& columns) {
  std::string text = fmt::format("#{}\n", title);
  for (const Column& column : columns) {
    append_cell(text, column, column.name);
  }
  return text + "\n";
}

std::string format_row(const Columns& columns, const std::vector<std::string>& cells) {
  std::string text;
  for (std::size_t i = 0; i < cells.size(); ++i) {
    append_cell(text, columns[i], cells[i]);
  }
  return text + "\n";
}

double gigabytes_per_s(double bytes, double seconds) {
  return seconds > 0 ? bytes / seconds / 1e9 : 0;
}

double alltoall_bus_bandwidth(double algorithm_bandwidth, std::size_t pe_count) {
  const auto n = static_cast<double>(pe_count);
  return algorithm_bandwidth * (n - 1) / n;
}

}  // namespace weft::perf
