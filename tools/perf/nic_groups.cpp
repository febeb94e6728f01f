#include "tools/perf/nic_groups.hpp"

#include <algorithm>
#include <map>

#include <nlohmann/json.hpp>

namespace weft::perf {
namespace {

using nlohmann::json;

// A sample is late when it comes after so many intervals.
constexpr double kLateIntervals = 2;

void add_nic(NicGroup& group, const NicReport& nic) {
  group.node = nic.node;
  group.sends = group.sends || nic.sends;
  group.receives = group.receives || nic.receives;
  group.nics.push_back(nic.nic);
  group.bytes_per_s.push_back(static_cast<double>(nic.rate.bits_per_s) / 8);
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

MomentReport::Directions parse_directions(const json& object) {
  return {.tx = parse_evenness(object[0]), .rx = parse_evenness(object[1])};
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

std::vector<NicGroup> groups_of(const BalanceReport& report) {
  std::map<std::uint32_t, NicGroup> by_pe;
  std::map<std::uint32_t, NicGroup> by_node;
  for (const NicReport& nic : report.nics) {
    if (!nic.kernel) {
      continue;
    }
    add_nic(by_node[nic.node], nic);
    for (std::size_t i = 0; i < nic.pes.size(); ++i) {
      if (i == 0 || nic.pes[i] != nic.pes[i - 1]) {
        add_nic(by_pe[nic.pes[i]], nic);
      }
    }
  }
  std::vector<NicGroup> groups;
  for (auto* all : {&by_pe, &by_node}) {
    for (auto& [number, group] : *all) {
      group.is_node = all == &by_node;
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
    all.push_back(
        {group.node, group.is_node, group.sends, group.receives, group.nics, group.bytes_per_s});
  }
  return all.dump();
}

std::vector<NicGroup> parse_groups(const std::string& text) {
  std::vector<NicGroup> groups;
  for (const json& group : json::parse(text)) {
    groups.push_back({.node = group[0],
                      .is_node = group[1],
                      .sends = group[2],
                      .receives = group[3],
                      .nics = group[4],
                      .bytes_per_s = group[5]});
  }
  return groups;
}

MomentReport judge_moments(const DeviceSamples& devices, const std::vector<NicGroup>& groups) {
  MomentReport moments{.interval_s = devices.interval_s, .look_s = devices.look_s};
  for (const NicGroup& group : groups) {
    const std::vector<std::size_t> columns = columns_of(group.nics, devices.names);
    if (group.node != devices.node || columns.empty()) {
      continue;
    }
    IntervalRule rule{
        .longest_ns = static_cast<std::int64_t>(kLateIntervals * devices.interval_s * 1e9),
        .bytes_per_s = std::vector<double>(devices.names.size(), 0)};
    for (std::size_t i = 0; i < columns.size(); ++i) {
      rule.bytes_per_s[columns[i]] = group.bytes_per_s[i];
    }
    auto& directions = group.is_node ? moments.kernel_of_node : moments.kernel_of_pe;
    if (group.sends) {
      directions.tx.add(evenness_of(devices.samples, columns, &NicSample::tx_bytes, rule));
    }
    if (group.receives) {
      directions.rx.add(evenness_of(devices.samples, columns, &NicSample::rx_bytes, rule));
    }
  }
  return moments;
}

std::string format_moments(const MomentReport& moments) {
  return json{moments.interval_s, moments.look_s, describe(moments.kernel_of_pe),
              describe(moments.kernel_of_node)}
      .dump();
}

void add_moments(const std::string& text, MomentReport& moments) {
  const json object = json::parse(text);
  moments.interval_s = std::max(moments.interval_s, object[0].get<double>());
  moments.look_s = std::max(moments.look_s, object[1].get<double>());
  moments.kernel_of_pe.add(parse_directions(object[2]));
  moments.kernel_of_node.add(parse_directions(object[3]));
}

}  // namespace weft::perf
