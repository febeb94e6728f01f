#include "tools/perf/nic_counters.hpp"

#include <algorithm>
#include <filesystem>
#include <fstream>

#include <fmt/format.h>
#include <nlohmann/json.hpp>
#include <sys/stat.h>
#include <unistd.h>

#include "tools/perf/library_intervals.hpp"

namespace weft::perf {
namespace {

using nlohmann::json;

// PEs with the same key see the same devices: one machine (its boot), one network namespace, and
// one folder /sys/class, in whose place emulated nodes have folders of their own.
std::string host_key() {
  std::ifstream file("/proc/sys/kernel/random/boot_id");
  std::string boot;
  file >> boot;
  std::error_code ignored;
  struct stat status{};
  static_cast<void>(::stat("/sys/class", &status));
  return fmt::format("{}/{}/{}:{}", boot,
                     std::filesystem::read_symlink("/proc/self/ns/net", ignored).string(),
                     status.st_dev, status.st_ino);
}

json describe_devices(const std::vector<std::string>& names, const std::vector<NicBytes>& bytes) {
  json devices = json::array();
  for (std::size_t i = 0; i < names.size(); ++i) {
    devices.push_back({names[i], bytes[i].tx_bytes, bytes[i].rx_bytes});
  }
  return devices;
}

json describe_changes(const std::vector<RailChange>& changes) {
  json all = json::array();
  for (const auto& [rail, bytes] : changes) {
    all.push_back({rail.pe, rail.rail, bytes.tx_bytes, bytes.rx_bytes});
  }
  return all;
}

std::vector<RailChange> parse_changes(const json& all) {
  std::vector<RailChange> changes;
  for (const json& change : all) {
    changes.push_back({.rail = {.pe = change[0], .rail = change[1]},
                       .bytes = {.tx_bytes = change[2], .rx_bytes = change[3]}});
  }
  return changes;
}

std::vector<RailReport> parse_rails(const json& rails) {
  std::vector<RailReport> reports;
  for (const json& rail : rails) {
    reports.push_back(
        {.nic = rail[0],
         .address = rail[1],
         .retries = rail[2],
         .errors = rail[3],
         .rate = {.bits_per_s = rail[4], .payload_share = rail[5], .unknown_because = rail[6]}});
  }
  return reports;
}

// What a PE put to and got from others belongs to the others' rails as well.
void add_bytes_of_rails(std::vector<PeReport>& reports) {
  for (std::uint32_t pe = 0; pe < reports.size(); ++pe) {
    for (const RailChange& change : reports[pe].changes) {
      std::vector<RailReport>& rails = reports[change.rail.pe].rails;
      if (change.rail.rail < rails.size()) {
        rails[change.rail.rail].bytes.add(bytes_of_rail(change, pe));
      }
    }
  }
}

PeReport parse_report(const json& object) {
  PeReport report{
      .node = object["node"],
      .host_key = object["host"],
      .rails = parse_rails(object["rails"]),
      .changes = parse_changes(object["changes"]),
      .measured = {.seconds = object["measured_s"], .changes = parse_changes(object["measured"])}};
  for (const json& device : object["devices"]) {
    report.devices.try_emplace(device[0], NicBytes{.tx_bytes = device[1], .rx_bytes = device[2]});
  }
  return report;
}

// Each PE's rails among the NICs of the report.
LibraryTotals::Rows rows_of(const std::vector<PeReport>& pes, const BalanceReport& report) {
  LibraryTotals::Rows rows;
  for (const PeReport& pe : pes) {
    std::vector<std::size_t>& of_pe = rows.emplace_back();
    for (const RailReport& rail : pe.rails) {
      const auto row = std::ranges::find_if(report.nics, [&](const NicReport& nic) {
        return nic.node == pe.node && nic.nic == rail.nic && nic.address == rail.address;
      });
      of_pe.push_back(static_cast<std::size_t>(row - report.nics.begin()));
    }
  }
  return rows;
}

}  // namespace

NicCounters::NicCounters(Job& job,
                         std::uint64_t sample_interval_ms,
                         std::uint64_t nic_rate_bits_per_s)
    : job_(job), nic_rate_bits_per_s_(nic_rate_bits_per_s), library_(job) {
  if (sample_interval_ms > 0) {
    watch_ = std::make_unique<MomentWatch>(job, std::chrono::milliseconds(sample_interval_ms));
  }
  Job::barrier();
  begin_ = take();
  Job::barrier();
}

NicCounters::Snapshot NicCounters::take() {
  return {.rails = library_.rails(), .columns = library_.read(), .devices = devices_.read()};
}

void NicCounters::begin_measured(StepEnd step_end) {
  measured_begin_ = library_.read();
  if (watch_) {
    watch_->begin(step_end);
  }
}

double NicCounters::end_step() {
  if (!watch_) {
    return 0;
  }
  const Clock::time_point start = Clock::now();
  watch_->end_step();
  return seconds_since(start);
}

void NicCounters::end_measured(double seconds) {
  if (watch_) {
    watch_->end();
  }
  const std::vector<NicBytes> bytes = moved(measured_begin_, library_.read());
  measured_s_ += seconds;
  measured_.resize(bytes.size());
  for (std::size_t column = 0; column < bytes.size(); ++column) {
    measured_[column].add(bytes[column]);
  }
}

std::string NicCounters::describe_change(const Snapshot& end) const {
  json rails = json::array();
  const NicRates rates(nic_rate_bits_per_s_);
  for (std::size_t i = 0; i < end.rails.size(); ++i) {
    const NicRate rate = rates.of(end.rails[i].nic, end.rails[i].address);
    const weft_rail_counters& before = begin_.rails[i];
    const weft_rail_counters& after = end.rails[i];
    rails.push_back({after.nic, after.address, after.retries - before.retries,
                     after.errors - before.errors, rate.bits_per_s, rate.payload_share,
                     rate.unknown_because});
  }
  const LibraryColumns& columns = library_.columns();
  const auto changes = rail_changes(columns, moved(begin_.columns, end.columns));
  return json{{"node", job_.node_of(job_.me())},
              {"host", host_key()},
              {"rails", rails},
              {"changes", describe_changes(changes)},
              {"devices", describe_devices(devices_.names(), moved(begin_.devices, end.devices))},
              {"measured_s", measured_s_},
              {"measured", describe_changes(rail_changes(columns, measured_))}}
      .dump();
}

BalanceReport NicCounters::finish() {
  Job::barrier();
  const Snapshot end = take();
  Job::barrier();  // before anyone's gather adds to the counters
  std::vector<PeReport> reports;
  for (const std::string& text : job_.gather(describe_change(end))) {
    reports.push_back(parse_report(json::parse(text)));
  }
  add_bytes_of_rails(reports);
  BalanceReport report = make_balance_report(reports);
  if (watch_) {
    report.moments = watch_->judge(report, rows_of(reports, report));
  }
  return report;
}

}  // namespace weft::perf
