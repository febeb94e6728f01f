#include "tools/sim/report.hpp"

#include <vector>

#include <fmt/format.h>
#include <fmt/ranges.h>

#include "tools/perf/table.hpp"

namespace weft::sim {
namespace {

constexpr std::string_view kCsvColumns =
    "bytes,message_bytes,policy,latency_us,algbw_gb_per_s,busbw_gb_per_s,share_of_rails,"
    "tx_max_over_mean,rx_max_over_mean,tx_moment,rx_moment,p99_us,slow_rails,links_down,limit,"
    "sample";

perf::Columns columns_of(const Format& format) {
  perf::Columns columns{{"size(B)", 13},     {"to each(B)", 12},  {"policy", 10},
                        {"latency(us)", 14}, {"algbw(GB/s)", 13}, {"busbw(GB/s)", 13},
                        {"share", 8},        {"TX", 7},           {"RX", 7},
                        {"TX now", 8},       {"RX now", 8},       {"p99(us)", 12}};
  if (format.is_compared) {
    columns.push_back({"real(us)", 12});
    columns.push_back({"error %", 9});
  }
  columns.push_back({"limit"});
  return columns;
}

double error_percent(const Line& line) {
  return (line.prediction.us / line.measured_us.value_or(line.prediction.us) - 1) * 100;
}

// A cell of a CSV file.
std::string quoted(const std::string& text) {
  return text.find(',') == std::string::npos ? text : fmt::format("\"{}\"", text);
}

std::string csv_line(const Format& format, const Line& line) {
  const Prediction& prediction = line.prediction;
  const Outcome& outcome = prediction.outcome;
  std::string text = fmt::format(
      "{:.0f},{},{},{:.3f},{:.4f},{:.4f},{:.4f},{:.4f},{:.4f},{:.4f},{:.4f},{:.3f},{},{},{},{}",
      prediction.bytes, line.message_bytes, line.policy, prediction.us, prediction.algbw_gb_per_s,
      prediction.busbw_gb_per_s, outcome.share, outcome.tx_max_over_mean, outcome.rx_max_over_mean,
      outcome.tx_moment, outcome.rx_moment, outcome.p99_ns / 1e3, outcome.slow_rails,
      outcome.links_down, quoted(prediction.limit), quoted(prediction.sample));
  if (format.is_compared) {
    text += fmt::format(",{:.3f},{:.2f}", line.measured_us.value_or(0), error_percent(line));
  }
  return text + "\n";
}

}  // namespace

std::string header_text(const Format& format, std::string_view title) {
  if (format.is_csv) {
    return fmt::format("{}{}\n", kCsvColumns,
                       format.is_compared ? ",measured_us,error_percent" : "");
  }
  return perf::format_header(title, columns_of(format));
}

std::string line_text(const Format& format, const Line& line) {
  if (format.is_csv) {
    return csv_line(format, line);
  }
  const Prediction& prediction = line.prediction;
  const Outcome& outcome = prediction.outcome;
  std::vector<std::string> cells{fmt::format("{:.0f}", prediction.bytes),
                                 fmt::format("{}", line.message_bytes),
                                 line.policy,
                                 fmt::format("{:.3f}", prediction.us),
                                 fmt::format("{:.3f}", prediction.algbw_gb_per_s),
                                 fmt::format("{:.3f}", prediction.busbw_gb_per_s),
                                 fmt::format("{:.3f}", outcome.share),
                                 fmt::format("{:.2f}", outcome.tx_max_over_mean),
                                 fmt::format("{:.2f}", outcome.rx_max_over_mean),
                                 fmt::format("{:.2f}", outcome.tx_moment),
                                 fmt::format("{:.2f}", outcome.rx_moment),
                                 fmt::format("{:.1f}", outcome.p99_ns / 1e3)};
  if (format.is_compared) {
    cells.push_back(line.measured_us ? fmt::format("{:.3f}", *line.measured_us) : "");
    cells.push_back(line.measured_us ? fmt::format("{:+.1f}", error_percent(line)) : "");
  }
  std::string limit = prediction.limit;
  if (outcome.slow_rails > 0) {
    limit += fmt::format("; {} NICs found slow", outcome.slow_rails);
  }
  if (outcome.links_down > 0) {
    limit += fmt::format("; {} links down", outcome.links_down);
  }
  if (!prediction.sample.empty()) {
    limit += "; " + prediction.sample;
  }
  cells.push_back(limit);
  return perf::format_row(columns_of(format), cells);
}

std::string residuals_text(const Residuals& residuals) {
  return fmt::format("error: mean {:.1f} %, max {:.1f} % at {} bytes, {} rows\n",
                     residuals.mean * 100, residuals.most * 100, residuals.at_bytes,
                     residuals.count);
}

}  // namespace weft::sim
