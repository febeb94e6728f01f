#include "tools/perf/gpu/session.hpp"

#include <weft/device.h>

#include <algorithm>
#include <exception>
#include <utility>

#include <fmt/format.h>

#include "tools/perf/nic_counters.hpp"
#include "tools/perf/report.hpp"
#include "tools/perf/statistics.hpp"

namespace weft::perf::gpu {
namespace {

Columns columns_of(const Row& row) {
  Columns columns = latency_columns();
  switch (row.layout) {
    case Layout::Collective:
      columns = alltoall_columns();
      break;
    case Layout::Bandwidth:
      columns = bandwidth_columns();
      break;
    case Layout::Rate:
      columns = {{"size(B)", 12}, {"scope", 10}, {"commands/s", 18}, {"p50(us)", 14}, {"p99(us)"}};
      break;
    case Layout::Latency:
      break;
  }
  return row.has_spread ? with_spread(std::move(columns)) : columns;
}

double gigabytes_of(const Row& row) {
  return gigabytes_per_s(static_cast<double>(row.bytes) * row.directions, row.latency_us * 1e-6);
}

std::vector<std::string> cells_of(const Row& row, const Spread& times) {
  std::vector<std::string> cells{fmt::format("{}", row.bytes)};
  switch (row.layout) {
    case Layout::Collective:
      cells.insert(cells.end(),
                   {fmt::format("{}", row.count), row.type, row.scope,
                    fmt::format("{:.6f}", row.latency_us), fmt::format("{:.3f}", gigabytes_of(row)),
                    fmt::format("{:.3f}", gigabytes_of(row) * row.bus_factor)});
      break;
    case Layout::Bandwidth:
      cells.insert(cells.end(), {row.scope, fmt::format("{:.6f}", gigabytes_of(row))});
      break;
    case Layout::Rate:
      cells.insert(cells.end(), {row.scope, fmt::format("{:.0f}", 1e6 / row.latency_us),
                                 row.p50_us > 0 ? fmt::format("{:.6f}", row.p50_us) : "-",
                                 row.p99_us > 0 ? fmt::format("{:.6f}", row.p99_us) : "-"});
      break;
    case Layout::Latency:
      cells.insert(cells.end(), {row.scope, fmt::format("{:.6f}", row.latency_us)});
      break;
  }
  if (row.has_spread) {
    for (std::string& cell : spread_cells(times)) {
      cells.push_back(std::move(cell));
    }
  }
  return cells;
}

nlohmann::json describe(const Row& row, const Spread& times) {
  nlohmann::json more{{"bench", row.title},
                      {"peer", "Weft"},
                      {"version", WEFT_VERSION},
                      {"scope", row.scope},
                      {"type", row.type},
                      {"bytes", row.bytes},
                      {"count", row.count},
                      {"ctas", row.ctas},
                      {"threads", row.threads},
                      {"iterations", row.iterations},
                      {"latency_us", row.latency_us}};
  if (row.layout == Layout::Rate) {
    more["commands_per_s"] = 1e6 / row.latency_us;
  }
  if (row.p50_us > 0) {
    more.update({{"to_post_p50_us", row.p50_us},
                 {"to_post_p99_us", row.p99_us},
                 {"round_trip_p50_us", row.answer_p50_us},
                 {"round_trip_p99_us", row.answer_p99_us},
                 {"bare_round_trip_p50_us", row.bare_answer_p50_us},
                 {"numbered_round_trip_p50_us", row.numbered_answer_p50_us}});
  }
  if (row.layout == Layout::Collective || row.layout == Layout::Bandwidth) {
    more["gb_per_s"] = gigabytes_of(row);
  }
  if (row.layout == Layout::Collective) {
    more["bus_gb_per_s"] = gigabytes_of(row) * row.bus_factor;
  }
  if (row.has_spread) {
    more["latency_min_us"] = times.min * 1e6;
    more["latency_max_us"] = times.max * 1e6;
  }
  return more;
}

}  // namespace

DeviceBlock::DeviceBlock(std::size_t bytes) : data_(weft_device_calloc(bytes, 1)) {
  if (data_ == nullptr) {
    throw JobError(weft_last_error(), kStatusFailure);
  }
}

DeviceBlock::~DeviceBlock() {
  // A failed run leaves the job without this barrier; the process is about to end then.
  if (std::uncaught_exceptions() == 0) {
    static_cast<void>(weft_device_free(data_));
  }
}

Session::Session(Job& job, const Options& options, Report& report, std::string gpu_name)
    : job_(job),
      options_(options),
      report_(report),
      gpu_name_(std::move(gpu_name)),
      source_(std::max(options.sizes.end, kLeastBufferBytes)),
      dest_(std::max(options.sizes.end, kLeastBufferBytes)),
      words_(kWordCount * sizeof(std::uint64_t)) {}

void Session::barrier() {
  wait_for_gpu();
  Job::barrier();
}

bool Session::begins_table(std::string_view title) {
  return std::exchange(table_, title) != title;
}

void Session::add_interval(const Interval& interval) {
  const double rate = gigabytes_per_s(static_cast<double>(interval.bytes), interval.seconds);
  if (begins_table(options_.name)) {
    report_.header(options_.name, {{"time(ms)", 12}, {"page(B)", 10}, {"BW (GB/sec)"}});
  }
  report_.row({fmt::format("{:.1f}", interval.milliseconds), fmt::format("{}", interval.page_bytes),
               fmt::format("{:.6f}", rate)},
              {.size = interval.page_bytes,
               .value = rate,
               .unit = "GB/s",
               .more = {{"time_ms", interval.milliseconds}, {"gpu", gpu_name_}}});
}

void Session::add(const Row& row, std::uint64_t wrong_count) {
  const bool is_right = job_.sum(wrong_count) == 0;
  wrong_rows_ += is_right ? 0 : 1;
  std::vector<double> seconds = job_.gather(row.latency_us * 1e-6);
  if (seconds.empty()) {
    return;
  }
  std::erase(seconds, 0.0);
  const Spread times = spread_of(seconds);
  Row whole = row;
  whole.latency_us = times.max * 1e6;
  if (begins_table(whole.title)) {
    report_.header(whole.title, columns_of(whole));
  }
  nlohmann::json more = describe(whole, times);
  more["gpu"] = gpu_name_;
  more["verified"] = is_right;
  more["verifies"] = options_.verifies;
  report_.row(
      cells_of(whole, times),
      {.size = whole.bytes, .value = whole.latency_us, .unit = "us", .more = std::move(more)});
  if (!is_right) {
    fmt::print(stderr, "weft-perf: {} {}, {} bytes: the data is wrong\n", whole.title, whole.scope,
               whole.bytes);
  }
}

void Session::require_right() const {
  if (wrong_rows_ != 0) {
    throw JobError(job_.me() == 0 ? fmt::format("{} rows have wrong data", wrong_rows_) : "",
                   kStatusFailure);
  }
}

void run(const Options& options) {
  Job job(environment_of(options));
  take_gpu(weft_machine_pe());
  if (weft_device_init() != WEFT_OK) {
    throw JobError("", kStatusUsage);  // weft_device_init has printed why
  }
  require_pes(job, options.name, options.benchmark->pe_count_min);
  Report report(job, ReportPlan{.subcommand = options.name,
                                .command_line = options.command_line,
                                .prints_json = options.prints_json,
                                .output = options.output});
  Session session(job, options, report, name_of_gpu());
  Session::barrier();
  NicCounters counters(job);
  options.benchmark->run(session);
  Session::barrier();
  if (const BalanceReport balance = counters.finish(); !balance.nics.empty()) {
    report.balance(balance);
  }
  session.require_right();
}

}  // namespace weft::perf::gpu
