#include "tools/perf/nic_groups.hpp"

#include <algorithm>
#include <map>

#include <nlohmann/json.hpp>

namespace weft::perf {
namespace {

using nlohmann::json;

// A sample is late when it comes after so many intervals.
constexpr double kLateIntervals = 2;

void add_nic(NicGroup& group, const BalanceReport& report, std::size_t row, CountedBy counter) {
  const NicReport& nic = report.nics[row];
  const double payload_share = counter == CountedBy::Library ? nic.rate.payload_share : 1;
  group.node = nic.node;
  group.sends = group.sends || nic.sends;
  group.receives = group.receives || nic.receives;
  group.nics.push_back(nic.nic);
  group.rows.push_back(row);
  group.bytes_per_s.push_back(static_cast<double>(nic.rate.bits_per_s) / 8 * payload_share);
}

json describe(const Evenness& evenness) {
  return {evenness.sum, evenness.worst, evenness.count};
}

Evenness parse_evenness(const json& object) {
  return {.sum = object[0], .worst = object[1], .count = object[2]};
}

json describe(const MomentReport::Directions& directions) {
  return {describe(directions.tx), describe(directions.rx)};
}

json describe(const MomentReport::Groups& groups) {
  return {describe(groups.of_pe), describe(groups.of_node)};
}

MomentReport::Directions parse_directions(const json& object) {
  return {.tx = parse_evenness(object[0]), .rx = parse_evenness(object[1])};
}

MomentReport::Groups parse_evenness_of_groups(const json& object) {
  return {.of_pe = parse_directions(object[0]), .of_node = parse_directions(object[1])};
}

// The devices' places among the samples; empty if one is missing.
std::vector<std::size_t> columns_of(const std::vector<std::string>& nics,
                                    const std::vector<std::string>& names) {
  std::vector<std::size_t> columns;
  for (const std::string& nic : nics) {
    const auto found = std::ranges::find(names, nic);
    if (found == names.end()) {
      return {};
    }
    columns.push_back(static_cast<std::size_t>(found - names.begin()));
  }
  return columns;
}

}  // namespace

std::vector<NicGroup> groups_of(const BalanceReport& report, CountedBy counter) {
  std::map<std::uint32_t, NicGroup> by_pe;
  std::map<std::uint32_t, NicGroup> by_node;
  for (std::size_t row = 0; row < report.nics.size(); ++row) {
    const NicReport& nic = report.nics[row];
    if (counter == CountedBy::Kernel && !nic.kernel) {
      continue;
    }
    add_nic(by_node[nic.node], report, row, counter);
    for (std::size_t i = 0; i < nic.pes.size(); ++i) {
      if (i == 0 || nic.pes[i] != nic.pes[i - 1]) {
        add_nic(by_pe[nic.pes[i]], report, row, counter);
      }
    }
  }
  std::vector<NicGroup> groups;
  for (auto* all : {&by_pe, &by_node}) {
    for (auto& [number, group] : *all) {
      group.is_node = all == &by_node;
      group.pe = group.is_node ? 0 : number;
      if (group.nics.size() > 1 && (group.sends || group.receives)) {
        groups.push_back(group);
      }
    }
  }
  return groups;
}

std::string format_groups(const std::vector<NicGroup>& groups) {
  json all = json::array();
  for (const NicGroup& group : groups) {
    all.push_back({group.node, group.pe, group.is_node, group.sends, group.receives, group.nics,
                   group.bytes_per_s});
  }
  return all.dump();
}

std::vector<NicGroup> parse_groups(const std::string& text) {
  std::vector<NicGroup> groups;
  for (const json& group : json::parse(text)) {
    groups.push_back({.node = group[0],
                      .pe = group[1],
                      .is_node = group[2],
                      .sends = group[3],
                      .receives = group[4],
                      .nics = group[5],
                      .bytes_per_s = group[6]});
  }
  return groups;
}

bool is_judged(const NicGroup& group, Direction direction, StepEnd end, std::uint32_t pe) {
  const bool is_tx = direction == &NicBytes::tx_bytes;
  if (!(is_tx ? group.sends : group.receives)) {
    return false;
  }
  return end == StepEnd::Barrier ||
         (!group.is_node && group.pe == pe && is_tx == (end == StepEnd::QuietAfterPuts));
}

Evenness& evenness_of_group(MomentReport::Groups& groups,
                            const NicGroup& group,
                            Direction direction) {
  MomentReport::Directions& directions = group.is_node ? groups.of_node : groups.of_pe;
  return direction == &NicBytes::tx_bytes ? directions.tx : directions.rx;
}

MomentReport judge_moments(const DeviceSamples& devices, const std::vector<NicGroup>& groups) {
  MomentReport moments{.interval_s = devices.interval_s, .look_s = devices.look_s};
  IntervalRule by_time{.longest_ns =
                           static_cast<std::int64_t>(kLateIntervals * devices.interval_s * 1e9)};
  for (const NicGroup& group : groups) {
    const std::vector<std::size_t> columns = columns_of(group.nics, devices.names);
    if (group.node != devices.node || columns.empty()) {
      continue;
    }
    by_time.bytes_per_s.assign(devices.names.size(), 0);
    for (std::size_t i = 0; i < columns.size(); ++i) {
      by_time.bytes_per_s[columns[i]] = group.bytes_per_s[i];
    }
    const IntervalRule by_step{
        .by_step = true, .piece_bytes = kStepPieceBytes, .bytes_per_s = by_time.bytes_per_s};
    for (const auto direction : kBothDirections) {
      if (is_judged(group, direction, StepEnd::Barrier, devices.pe)) {
        evenness_of_group(moments.by_time.kernel, group, direction)
            .add(evenness_of(devices.by_time, columns, direction, by_time));
      }
      if (is_judged(group, direction, devices.step_end, devices.pe)) {
        evenness_of_group(moments.by_step.kernel, group, direction)
            .add(evenness_of(devices.by_step, columns, direction, by_step));
      }
    }
  }
  return moments;
}

std::string format_moments(const MomentReport& moments) {
  return json{moments.interval_s, moments.look_s, describe(moments.by_time.kernel),
              describe(moments.by_step.kernel)}
      .dump();
}

void add_moments(const std::string& text, MomentReport& moments) {
  const json object = json::parse(text);
  moments.interval_s = std::max(moments.interval_s, object[0].get<double>());
  moments.look_s = std::max(moments.look_s, object[1].get<double>());
  moments.by_time.kernel.add(parse_evenness_of_groups(object[2]));
  moments.by_step.kernel.add(parse_evenness_of_groups(object[3]));
}

}  // namespace weft::perf
