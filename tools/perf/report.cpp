#include "tools/perf/report.hpp"

#include <chrono>
#include <cstdio>
#include <thread>

#include <fmt/chrono.h>
#include <fmt/format.h>
#include <sys/utsname.h>

#include "tools/perf/benchmark.hpp"

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
                        {"rx_bytes_kernel", nullptr},
                        {"rate_bits_per_s", nullptr},
                        {"payload_share_of_rate", nic.rate.payload_share}};
  if (nic.rate.bits_per_s != 0) {
    object["rate_bits_per_s"] = nic.rate.bits_per_s;
  }
  if (nic.kernel) {
    object["tx_bytes_kernel"] = nic.kernel->tx_bytes;
    object["rx_bytes_kernel"] = nic.kernel->rx_bytes;
  }
  return object;
}

nlohmann::json describe_evenness(const Evenness& evenness) {
  return {{"mean", evenness.count == 0 ? nlohmann::json(nullptr) : nlohmann::json(evenness.mean())},
          {"worst", evenness.count == 0 ? nlohmann::json(nullptr) : nlohmann::json(evenness.worst)},
          {"intervals", evenness.count}};
}

nlohmann::json describe_directions(const MomentReport::Directions& directions) {
  return {{"tx", describe_evenness(directions.tx)}, {"rx", describe_evenness(directions.rx)}};
}

nlohmann::json describe_groups(const MomentReport::Groups& groups) {
  return {{"pe", describe_directions(groups.of_pe)}, {"node", describe_directions(groups.of_node)}};
}

nlohmann::json describe_counters(const MomentReport::Counters& counters) {
  return {{"kernel", describe_groups(counters.kernel)},
          {"library", describe_groups(counters.library)}};
}

nlohmann::json describe_moments(const MomentReport& moments) {
  if (moments.interval_s == 0) {
    return nullptr;
  }
  nlohmann::json object = describe_counters(moments.by_time);
  object["interval_ms"] = moments.interval_s * 1e3;
  object["look_us"] = moments.look_s * 1e6;
  object["per_step"] = describe_counters(moments.by_step);
  return object;
}

nlohmann::json describe_share(const BalanceReport& report) {
  if (!report.share) {
    return {{"share_of_rails", nullptr}, {"share_unknown_because", report.share_unknown_because}};
  }
  return {{"share_of_rails", report.share->share()},
          {"time_needed_s", report.share->needed_s},
          {"time_taken_s", report.share->taken_s}};
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
             ReportPlan{.subcommand = std::string(options.benchmark->name),
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
  nlohmann::json object{{"nics", nics},
                        {"peers", report.peers},
                        {"tx_max_over_mean_library", ratio(report.library.tx)},
                        {"rx_max_over_mean_library", ratio(report.library.rx)},
                        {"tx_max_over_mean_kernel", ratio(report.kernel.tx)},
                        {"rx_max_over_mean_kernel", ratio(report.kernel.rx)},
                        {"max_over_mean_per_interval", describe_moments(report.moments)}};
  object.update(describe_share(report));
  json(std::move(object), "balance");
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
