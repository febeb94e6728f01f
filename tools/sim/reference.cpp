#include "tools/sim/reference.hpp"

#include <algorithm>
#include <cmath>
#include <fstream>
#include <initializer_list>
#include <optional>
#include <sstream>
#include <string_view>

#include "tools/sim/refuse.hpp"

namespace weft::sim {
namespace {

// By commas if there is one, else by blanks.
std::vector<std::string> cells_of(const std::string& line) {
  std::vector<std::string> cells;
  std::istringstream stream(line);
  std::string cell;
  if (line.find(',') == std::string::npos) {
    while (stream >> cell) {
      cells.push_back(cell);
    }
    return cells;
  }
  while (std::getline(stream, cell, ',')) {
    cells.push_back(cell);
  }
  return cells;
}

std::optional<std::size_t> column_of(const std::vector<std::string>& columns,
                                     std::initializer_list<std::string_view> names) {
  const auto found = std::ranges::find_if(columns, [&](const std::string& column) {
    return std::ranges::find(names, std::string_view(column)) != names.end();
  });
  if (found == columns.end()) {
    return std::nullopt;
  }
  return static_cast<std::size_t>(found - columns.begin());
}

struct Columns {
  std::size_t bytes = 0;
  std::size_t value = 0;
  bool is_bandwidth = false;
  std::optional<std::size_t> filtered;
  std::string wanted;
};

std::optional<Columns> find_columns(const std::vector<std::string>& cells,
                                    const std::string& filter,
                                    const std::string& file) {
  const auto bytes = column_of(cells, {"bytes", "size(B)", "size"});
  const auto latency = column_of(cells, {"latency_us", "latency(us)"});
  const auto bandwidth = column_of(cells, {"gb_per_s", "BW", "bw_gb_per_s"});
  if (!bytes || (!latency && !bandwidth)) {
    return std::nullopt;
  }
  Columns columns{.bytes = *bytes,
                  .value = latency ? *latency : *bandwidth,
                  .is_bandwidth = !latency,
                  .filtered = std::nullopt,
                  .wanted = {}};
  if (!filter.empty()) {
    const std::size_t equals = filter.find('=');
    columns.filtered = column_of(cells, {std::string_view(filter).substr(0, equals)});
    if (equals == std::string::npos || !columns.filtered) {
      refuse("--rows {}: write COLUMN=VALUE, with a column of {}", filter, file);
    }
    columns.wanted = filter.substr(equals + 1);
  }
  return columns;
}

std::optional<ReferenceRow> row_of(const std::vector<std::string>& cells, const Columns& columns) {
  if (cells.size() <= std::max({columns.bytes, columns.value, columns.filtered.value_or(0)}) ||
      (columns.filtered && cells[*columns.filtered] != columns.wanted)) {
    return std::nullopt;
  }
  try {
    return ReferenceRow{.bytes = std::stoull(cells[columns.bytes]),
                        .value = std::stod(cells[columns.value])};
  } catch (const std::logic_error&) {
    return std::nullopt;  // a line of text in the output of a program
  }
}

}  // namespace

Reference load_reference(const std::string& file, const std::string& filter) {
  std::ifstream stream(file);
  if (!stream) {
    refuse("{} cannot be read", file);
  }
  Reference reference{.file = file, .is_bandwidth = false, .rows = {}};
  std::optional<Columns> columns;
  std::string line;
  while (std::getline(stream, line)) {
    const auto cells = cells_of(line);
    if (!columns) {
      columns = find_columns(cells, filter, file);
    } else if (const auto row = row_of(cells, *columns); row && row->bytes > 0 && row->value > 0) {
      reference.rows.push_back(*row);
    }
  }
  if (!columns) {
    refuse(
        "{} has no table: one line must name the columns, among them bytes or size(B), and "
        "latency_us, latency(us) or gb_per_s",
        file);
  }
  if (reference.rows.empty()) {
    refuse("{} has no rows with a size and a value above 0{}", file,
           filter.empty() ? "" : " that --rows allows");
  }
  reference.is_bandwidth = columns->is_bandwidth;
  std::ranges::sort(reference.rows, {}, &ReferenceRow::bytes);
  return reference;
}

void Residuals::add(std::uint64_t bytes, double predicted, double measured) {
  const double error = std::abs(predicted / measured - 1);
  mean = (mean * static_cast<double>(count) + error) / static_cast<double>(count + 1);
  ++count;
  if (error >= most) {
    most = error;
    at_bytes = bytes;
  }
}

}  // namespace weft::sim
