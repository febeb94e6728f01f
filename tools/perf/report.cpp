#include "tools/perf/report.hpp"

#include <chrono>
#include <cstdio>
#include <thread>

#include <fmt/chrono.h>
#include <fmt/format.h>
#include <sys/utsname.h>

namespace weft::perf {
namespace {

std::string processor_model() {
  std::ifstream file("/proc/cpuinfo");
  for (std::string line; std::getline(file, line);) {
    const std::size_t colon = line.find(": ");
    if (line.starts_with("model name") && colon != std::string::npos) {
      return line.substr(colon + 2);
    }
  }
  return "unknown";
}

nlohmann::json describe_run(const Job& job, const ReportPlan& plan) {
  const auto now =
      std::chrono::time_point_cast<std::chrono::seconds>(std::chrono::system_clock::now());
  return {{"subcommand", plan.subcommand},
          {"policy", weft_rail_policy()},
          {"pes", job.pe_count()},
          {"nodes", job.node_count()},
          {"machine", describe_machine()},
          {"date", fmt::format("{:%Y-%m-%dT%H:%M:%SZ}", fmt::gmtime(now))},
          {"versions", {{"weft", WEFT_VERSION}}},
          {"command", plan.command_line}};
}

nlohmann::json ratio(const std::optional<double>& value) {
  return value ? nlohmann::json(*value) : nlohmann::json(nullptr);
}

nlohmann::json describe_nic(const NicReport& nic) {
  nlohmann::json object{{"node", nic.node},
                        {"nic", nic.nic},
                        {"address", nic.address},
                        {"pes", nic.pes},
                        {"sends", nic.sends},
                        {"receives", nic.receives},
                        {"retries", nic.retries},
                        {"errors", nic.errors},
                        {"tx_bytes_library", nic.library.tx_bytes},
                        {"rx_bytes_library", nic.library.rx_bytes},
                        {"tx_bytes_kernel", nullptr},
                        {"rx_bytes_kernel", nullptr}};
  if (nic.kernel) {
    object["tx_bytes_kernel"] = nic.kernel->tx_bytes;
    object["rx_bytes_kernel"] = nic.kernel->rx_bytes;
  }
  return object;
}

}  // namespace

nlohmann::json describe_machine() {
  utsname name{};
  uname(&name);
  return {{"uname", fmt::format("{} {} {}", name.sysname, name.release, name.machine)},
          {"host", name.nodename},
          {"cpu", processor_model()},
          {"cores", std::thread::hardware_concurrency()}};
}

Report::Report(const Job& job, const Options& options)
    : Report(job,
             ReportPlan{.subcommand = std::string(defaults_of(options.subcommand).name),
                        .command_line = options.command_line,
                        .prints_json = options.prints_json,
                        .output = options.output}) {}

Report::Report(const Job& job, const ReportPlan& plan)
    : is_writer_(job.me() == 0), prints_json_(plan.prints_json) {
  if (!is_writer_) {
    return;
  }
  if (!plan.output.empty()) {
    file_.open(plan.output, std::ios::app);
    if (!file_) {
      throw JobError(fmt::format("{}: cannot be opened for writing", plan.output), kStatusUsage);
    }
  }
  common_ = describe_run(job, plan);
}

void Report::header(std::string_view title, const Columns& columns) {
  title_ = title;
  columns_ = columns;
  table(format_header(title, columns));
}

void Report::row(const std::vector<std::string>& cells, const Measured& measured) {
  table(format_row(columns_, cells));
  nlohmann::json object{{"table", title_},
                        {"size", measured.size},
                        {"value", measured.value},
                        {"unit", measured.unit}};
  object.update(measured.more);
  json(std::move(object), "row");
}

void Report::balance(const BalanceReport& report) {
  table(format_balance(report));
  nlohmann::json nics = nlohmann::json::array();
  for (const NicReport& nic : report.nics) {
    nics.push_back(describe_nic(nic));
  }
  json({{"nics", nics},
        {"peers", report.peers},
        {"tx_max_over_mean_library", ratio(report.library.tx)},
        {"rx_max_over_mean_library", ratio(report.library.rx)},
        {"tx_max_over_mean_kernel", ratio(report.kernel.tx)},
        {"rx_max_over_mean_kernel", ratio(report.kernel.rx)}},
       "balance");
}

void Report::table(const std::string& text) const {
  if (is_writer_ && !prints_json_) {
    fmt::print("{}", text);
    static_cast<void>(std::fflush(stdout));
  }
}

void Report::json(nlohmann::json object, std::string_view kind) {
  if (!is_writer_) {
    return;
  }
  object["kind"] = kind;
  object.update(common_);
  if (prints_json_) {
    fmt::print("{}\n", object.dump());
    static_cast<void>(std::fflush(stdout));
  }
  if (file_.is_open()) {
    file_ << object.dump() << '\n' << std::flush;
  }
}

}  // namespace weft::perf
