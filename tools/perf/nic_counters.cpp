#include "tools/perf/nic_counters.hpp"

#include <algorithm>
#include <array>
#include <filesystem>
#include <fstream>
#include <numeric>

#include <fmt/format.h>
#include <nlohmann/json.hpp>
#include <sys/stat.h>
#include <unistd.h>

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

json describe_devices(const std::vector<DeviceBytes>& begin, const std::vector<DeviceBytes>& end) {
  json devices = json::array();
  for (std::size_t i = 0; i < std::min(begin.size(), end.size()); ++i) {
    devices.push_back(
        {end[i].name, end[i].tx_bytes - begin[i].tx_bytes, end[i].rx_bytes - begin[i].rx_bytes});
  }
  return devices;
}

// The library counts what a rail received by gets and by messages as one number, but messages stand
// in their senders' put_bytes too. What was got is known over all rails, from the peers' side, and
// is shared out over the rails as their RX is: exact unless gets and messages meet in one run.
void turn_into_got_bytes(std::vector<RailReport>& rails, std::uint64_t got_bytes) {
  const auto received =
      std::accumulate(rails.begin(), rails.end(), std::uint64_t{0},
                      [](auto sum, const RailReport& rail) { return sum + rail.rx_bytes; });
  for (RailReport& rail : rails) {
    const double share =
        received == 0 ? 0.0 : static_cast<double>(rail.rx_bytes) / static_cast<double>(received);
    rail.rx_bytes = static_cast<std::uint64_t>(share * static_cast<double>(got_bytes));
  }
}

std::vector<RailReport> parse_rails(const json& rails) {
  std::vector<RailReport> reports;
  for (const json& rail : rails) {
    reports.push_back(
        {.nic = rail[0],
         .address = rail[1],
         .tx_bytes = rail[2],
         .rx_bytes = rail[3],
         .retries = rail[4],
         .errors = rail[5],
         .rate = {.bits_per_s = rail[6], .payload_share = rail[7], .unknown_because = rail[8]}});
  }
  return reports;
}

// What `pe` put to and got from others belongs to the others' rails as well.
void add_to_peers(const json& peers, std::vector<PeReport>& reports) {
  for (const json& entry : peers) {
    std::vector<RailReport>& rails = reports[entry[0].get<std::size_t>()].rails;
    const auto rail = entry[1].get<std::size_t>();
    if (rail < rails.size()) {
      rails[rail].rx_bytes += entry[2].get<std::uint64_t>();
      rails[rail].tx_bytes += entry[3].get<std::uint64_t>();
    }
  }
}

PeReport parse_report(const json& object) {
  PeReport report{
      .node = object["node"], .host_key = object["host"], .rails = parse_rails(object["rails"])};
  for (const json& device : object["devices"]) {
    report.devices.push_back({.name = device[0], .tx_bytes = device[1], .rx_bytes = device[2]});
  }
  std::uint64_t got_bytes = 0;
  for (const json& entry : object["peers"]) {
    report.peers.push_back({.peer = entry[0], .put_bytes = entry[2], .got_bytes = entry[3]});
    got_bytes += report.peers.back().got_bytes;
  }
  turn_into_got_bytes(report.rails, got_bytes);
  report.measured.seconds = object["measured_s"];
  for (const json& entry : object["measured"]) {
    report.measured.peers.push_back(
        {.peer = entry[0], .put_bytes = entry[1], .got_bytes = entry[2]});
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

std::size_t count_or_throw(int result) {
  if (result < 0) {
    require(result);
  }
  return static_cast<std::size_t>(result);
}

}  // namespace

NicCounters::NicCounters(Job& job,
                         std::uint64_t sample_interval_ms,
                         std::uint64_t nic_rate_bits_per_s)
    : job_(job), nic_rate_bits_per_s_(nic_rate_bits_per_s) {
  if (sample_interval_ms > 0) {
    watch_ = std::make_unique<MomentWatch>(job, std::chrono::milliseconds(sample_interval_ms));
  }
  Job::barrier();
  begin_ = take();
  Job::barrier();
}

NicCounters::Snapshot NicCounters::take() const {
  Snapshot snapshot;
  std::array<weft_rail_counters, kRailCountMax> rails{};
  snapshot.rails.assign(rails.begin(),
                        rails.begin() + static_cast<std::ptrdiff_t>(count_or_throw(
                                            weft_counters(rails.data(), rails.size()))));
  snapshot.peers = take_peers();
  snapshot.devices = read_devices();
  return snapshot;
}

NicCounters::PeerCounters NicCounters::take_peers() const {
  PeerCounters peers;
  for (std::uint32_t pe = 0; pe < job_.pe_count(); ++pe) {
    std::array<weft_peer_rail_counters, kRailCountMax> peer{};
    const std::size_t count =
        pe == job_.me()
            ? 0
            : count_or_throw(weft_peer_counters(static_cast<int>(pe), peer.data(), peer.size()));
    peers.emplace_back(peer.begin(), peer.begin() + static_cast<std::ptrdiff_t>(count));
  }
  return peers;
}

void NicCounters::begin_measured(StepEnd step_end) {
  measured_begin_ = take_peers();
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
  const PeerCounters end = take_peers();
  measured_.seconds += seconds;
  measured_.peers.resize(end.size());
  for (std::size_t pe = 0; pe < end.size(); ++pe) {
    PeerBytes& sum = measured_.peers[pe];
    sum.peer = pe;
    for (std::size_t rail = 0; rail < end[pe].size(); ++rail) {
      const weft_peer_rail_counters before =
          rail < measured_begin_[pe].size() ? measured_begin_[pe][rail] : weft_peer_rail_counters{};
      sum.put_bytes += end[pe][rail].put_bytes - before.put_bytes;
      sum.got_bytes += end[pe][rail].get_bytes - before.get_bytes;
    }
  }
}

std::string NicCounters::describe_change(const Snapshot& end) const {
  json rails = json::array();
  const NicRates rates(nic_rate_bits_per_s_);
  for (std::size_t i = 0; i < end.rails.size(); ++i) {
    const NicRate rate = rates.of(end.rails[i].nic, end.rails[i].address);
    const weft_rail_counters& before = begin_.rails[i];
    const weft_rail_counters& after = end.rails[i];
    rails.push_back({after.nic, after.address, after.tx_bytes - before.tx_bytes,
                     after.rx_bytes - before.rx_bytes, after.retries - before.retries,
                     after.errors - before.errors, rate.bits_per_s, rate.payload_share,
                     rate.unknown_because});
  }
  json peers = json::array();
  for (std::size_t pe = 0; pe < end.peers.size(); ++pe) {
    for (std::size_t rail = 0; rail < end.peers[pe].size(); ++rail) {
      const weft_peer_rail_counters before =
          rail < begin_.peers[pe].size() ? begin_.peers[pe][rail] : weft_peer_rail_counters{};
      const weft_peer_rail_counters& after = end.peers[pe][rail];
      peers.push_back(
          {pe, rail, after.put_bytes - before.put_bytes, after.get_bytes - before.get_bytes});
    }
  }
  json measured = json::array();
  for (const PeerBytes& peer : measured_.peers) {
    measured.push_back({peer.peer, peer.put_bytes, peer.got_bytes});
  }
  return json{{"node", job_.node_of(job_.me())},
              {"host", host_key()},
              {"rails", rails},
              {"peers", peers},
              {"devices", describe_devices(begin_.devices, end.devices)},
              {"measured_s", measured_.seconds},
              {"measured", measured}}
      .dump();
}

BalanceReport NicCounters::finish() const {
  Job::barrier();
  const Snapshot end = take();
  Job::barrier();  // before anyone's gather adds to the counters
  const std::vector<std::string> texts = job_.gather(describe_change(end));
  std::vector<json> objects;
  std::vector<PeReport> reports;
  for (const std::string& text : texts) {
    objects.push_back(json::parse(text));
    reports.push_back(parse_report(objects.back()));
  }
  for (const json& object : objects) {
    add_to_peers(object["peers"], reports);
  }
  BalanceReport report = make_balance_report(reports);
  if (watch_) {
    report.moments = watch_->judge(report, rows_of(reports, report));
  }
  return report;
}

}  // namespace weft::perf
