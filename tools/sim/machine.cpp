#include "tools/sim/machine.hpp"

#include <algorithm>
#include <array>
#include <fstream>
#include <iterator>
#include <limits>
#include <utility>

#include <fmt/format.h>
#include <fmt/ranges.h>
#include <nlohmann/json.hpp>

#include "src/base/rail_policies.hpp"
#include "tools/sim/refuse.hpp"

namespace weft::sim {
namespace {

using nlohmann::json;
using nlohmann::ordered_json;

constexpr double kKib = 1024;
constexpr double kMegabyte = 1e6;
constexpr double kNever = std::numeric_limits<double>::infinity();

constexpr std::array kKeys{
    Key{"nic_gb_per_s", 0, "GB/s of payload of a NIC, in each direction"},
    Key{"efficiency", 1, "part of that rate where all PEs send to all"},
    Key{"latency_us", 8, "from the last byte received to the completion at the sender"},
    Key{"message_ns", 50, "of each piece at the sending NIC"},
    Key{"overload_rate", 1, "part of its rate that a NIC takes while overload_mb wait for it"},
    Key{"overload_mb", kNever, "MB"},
    Key{"copies_gb_per_s", kNever, "copies to PEs of the node, made by the caller after its puts"},
    Key{"copies_beyond_mb", 0, "MB that a PE sends in all, below which these copies take no time"},
    Key{"fault_timeout_ms", 500, "until an operation on a dead NIC fails"},
    Key{"cells_max", 8, "cells of a piece, as far as their sizes allow"},
    Key{"cell_kib_min", 8, "KiB"},
    Key{"cell_kib_max", 256, "KiB"},
    Key{"put_bw_ctas", 32, "CTAs of put_bw"},
    Key{"put_bw_gap_us", 0, "their barrier in each iteration"},
    Key{"weft.latency_us", 0, "instead of latency_us, under Weft"},
    Key{"nvshmem.latency_us", 0, "the same under NVSHMEM: 0 where the start of a call contains it"},
    Key{"weft.proxy_ns", 390, "of an operation at Weft's proxy"},
    Key{"nvshmem.proxy_ns", 749, "of an operation at NVSHMEM's proxy"},
};

// LIBRARY.floor_us.POLICY and LIBRARY.start_us.POLICY.
bool is_start_key(std::string_view key) {
  for (const Library library : {Library::Weft, Library::Nvshmem}) {
    for (const std::string_view what : {"floor_us", "start_us"}) {
      for (const Choice& policy : kRailPolicies) {
        if (key == fmt::format("{}.{}.{}", name_of(library), what, policy.name)) {
          return true;
        }
      }
    }
  }
  return false;
}

std::string key_names() {
  std::vector<std::string_view> names;
  std::ranges::transform(kKeys, std::back_inserter(names), &Key::name);
  return fmt::format("{}, and LIBRARY.floor_us.POLICY, LIBRARY.start_us.POLICY",
                     fmt::join(names, ", "));
}

std::uint32_t count_of(const json& document, const char* key, const std::string& origin) {
  const auto found = document.find(key);
  if (found == document.end() || !found->is_number_unsigned() || found->get<std::uint64_t>() == 0 ||
      found->get<std::uint64_t>() > 1024) {
    refuse("the machine {} needs \"{}\", a number from 1 to 1024", origin, key);
  }
  return found->get<std::uint32_t>();
}

Value value_of(const std::string& key, const json& entry, const std::string& origin) {
  if (!std::ranges::any_of(kKeys, [&](const Key& known) { return known.name == key; }) &&
      !is_start_key(key)) {
    refuse("the machine {} has a value \"{}\", which weft-sim does not know; it knows {}", origin,
           key, key_names());
  }
  if (!entry.is_object() || !entry.contains("value") || !entry["value"].is_number() ||
      !entry.contains("source") || !entry["source"].is_string()) {
    refuse(
        "\"{}\" of the machine {} must be {{\"value\": NUMBER, \"source\": \"where it is "
        "from\"}}",
        key, origin);
  }
  const Value value{.value = entry["value"].get<double>(),
                    .source = entry["source"].get<std::string>()};
  if (!(value.value >= 0)) {
    refuse("\"{}\" of the machine {} is {}: it cannot be below 0", key, origin, value.value);
  }
  return value;
}

}  // namespace

std::span<const Key> keys() {
  return kKeys;
}

std::string_view name_of(Library library) {
  return library == Library::Weft ? "weft" : "nvshmem";
}

double Machine::value(std::string_view key) const {
  if (const auto found = values.find(key); found != values.end()) {
    return found->second.value;
  }
  const auto* const known = std::ranges::find(kKeys, key, &Key::name);
  return known != kKeys.end() ? known->usual : 0;
}

void Machine::set(const std::string& key, double number, std::string source) {
  values[key] = {.value = number, .source = std::move(source)};
}

Machine parse_machine(const std::string& text, const std::string& origin) {
  json document;
  try {
    document = json::parse(text);
  } catch (const json::exception& error) {
    refuse("the machine {} is not JSON: {}", origin, error.what());
  }
  if (!document.is_object()) {
    refuse("the machine {} is no JSON object", origin);
  }
  Machine machine{.name = document.value("name", origin),
                  .text = document.value("text", ""),
                  .pes_per_node = count_of(document, "pes_per_node", origin),
                  .nics_per_pe = count_of(document, "nics_per_pe", origin),
                  .values = {}};
  const json values = document.value("values", json::object());
  for (const auto& [key, entry] : values.items()) {
    machine.values[key] = value_of(key, entry, origin);
  }
  for (const char* const key : {"nic_gb_per_s", "efficiency", "overload_rate", "copies_gb_per_s"}) {
    if (!(machine.value(key) > 0)) {
      refuse("the machine {} has no rate: set \"{}\" in its \"values\", {}", origin, key,
             std::ranges::find(kKeys, std::string_view(key), &Key::name)->text);
    }
  }
  return machine;
}

Machine load_machine(const std::string& name_or_file) {
  for (const BuiltIn& known : built_in_machines()) {
    if (known.name == name_or_file) {
      return parse_machine(std::string(known.json), name_or_file);
    }
  }
  std::ifstream file(name_or_file);
  if (!file) {
    std::vector<std::string_view> names;
    std::ranges::transform(built_in_machines(), std::back_inserter(names), &BuiltIn::name);
    refuse("--machine {}: there is no such file, and the machines that weft-sim knows are {}",
           name_or_file, fmt::join(names, ", "));
  }
  const std::string text{std::istreambuf_iterator<char>(file), {}};
  return parse_machine(text, name_or_file);
}

std::string machine_json(const Machine& machine) {
  ordered_json document{{"name", machine.name},
                        {"text", machine.text},
                        {"pes_per_node", machine.pes_per_node},
                        {"nics_per_pe", machine.nics_per_pe}};
  for (const auto& [key, value] : machine.values) {
    document["values"][key] = {{"value", value.value}, {"source", value.source}};
  }
  return document.dump(2) + "\n";
}

NicShape nic_of(const Machine& machine, Library library) {
  NicShape nic;
  nic.bytes_per_ns = machine.value("nic_gb_per_s") * machine.value("efficiency");
  const std::string latency = fmt::format("{}.latency_us", name_of(library));
  nic.latency_ns = machine.value(machine.values.contains(latency) ? latency : "latency_us") * 1e3;
  nic.message_ns = machine.value("message_ns");
  nic.proxy_ns = machine.value(fmt::format("{}.proxy_ns", name_of(library)));
  nic.overload_rate = machine.value("overload_rate");
  nic.overload_bytes = machine.value("overload_mb") * kMegabyte;
  nic.cells_max = static_cast<std::uint32_t>(std::max(1.0, machine.value("cells_max")));
  nic.cell_bytes_min =
      static_cast<std::uint32_t>(std::max(1.0, machine.value("cell_kib_min") * kKib));
  nic.cell_bytes_max = std::max(nic.cell_bytes_min,
                                static_cast<std::uint32_t>(machine.value("cell_kib_max") * kKib));
  nic.fault_timeout_ns = machine.value("fault_timeout_ms") * 1e6;
  return nic;
}

Start start_of(const Machine& machine, Library library, std::string_view policy) {
  const auto read = [&](const char* what) {
    return machine.value(fmt::format("{}.{}.{}", name_of(library), what, policy));
  };
  return {.floor_us = read("floor_us"), .start_us = read("start_us")};
}

}  // namespace weft::sim
