// The report for programs. Keys are stable; null is "not known", and for a limit "unlimited".
#include <nlohmann/json.hpp>

#include "tools/info/gpu_report.hpp"
#include "tools/info/libraries.hpp"
#include "tools/info/report.hpp"

namespace weft::info {
namespace {

using Json = nlohmann::ordered_json;

template <typename Value>
Json or_null(const std::optional<Value>& value) {
  return value ? Json(*value) : Json(nullptr);
}

Json pci_json(const std::optional<PciAddress>& pci) {
  return pci ? Json(to_string(*pci)) : Json(nullptr);
}

Json numa_json(const topology::Machine& machine, const std::optional<PciAddress>& pci) {
  const auto* device = pci ? topology::find_device(machine, *pci) : nullptr;
  return device == nullptr ? Json(nullptr) : or_null(device->numa);
}

Json machine_json(const Report& report) {
  const topology::Machine& machine = report.machine;
  Json gpus = Json::array();
  for (const topology::Gpu& gpu : machine.gpus) {
    gpus.push_back(
        {{"pci", to_string(gpu.pci)}, {"name", gpu.name}, {"numa", numa_json(machine, gpu.pci)}});
  }
  Json nodes = Json::array();
  for (const topology::NumaNode& node : machine.numa_nodes) {
    nodes.push_back({{"index", node.index}, {"pu_count", node.pu_count}});
  }
  return {{"source", report.machine_source},
          {"core_count", machine.core_count},
          {"pu_count", machine.pu_count},
          {"numa_nodes", nodes},
          {"gpus", gpus}};
}

Json distances_json(const topology::Machine& machine, const std::optional<PciAddress>& pci) {
  Json to_gpus = Json::array();
  for (const topology::Gpu& gpu : machine.gpus) {
    to_gpus.push_back(to_string(topology::distance(machine, {gpu.pci, std::nullopt}, pci)));
  }
  Json to_nodes = Json::array();
  for (const topology::NumaNode& node : machine.numa_nodes) {
    to_nodes.push_back(to_string(topology::distance(machine, {std::nullopt, node.index}, pci)));
  }
  return {{"gpus", to_gpus}, {"numa_nodes", to_nodes}};
}

Json nics_json(const Report& report) {
  Json nics = Json::array();
  for (std::size_t i = 0; i < report.fabric.nics.size(); ++i) {
    const topology::NicCandidate& nic = report.fabric.nics[i];
    const topology::NicVerdict& verdict = report.choice.verdicts[i];
    const topology::Nic* known = topology::find_nic(report.machine, nic.name);
    const auto pci = nic.pci || known == nullptr ? nic.pci : known->pci;
    nics.push_back(
        {{"name", nic.name},
         {"address", nic.address},
         {"pci", pci_json(pci)},
         {"numa", numa_json(report.machine, pci)},
         {"rate_bits_per_s", nic.rate_bits_per_s == 0 ? Json(nullptr) : Json(nic.rate_bits_per_s)},
         {"up", nic.up},
         {"loopback", nic.loopback},
         {"distance", distances_json(report.machine, pci)},
         {"chosen", verdict.chosen},
         {"reason", verdict.reason}});
  }
  return nics;
}

Json rails_json(const std::vector<RailFacts>& rails) {
  Json array = Json::array();
  for (const RailFacts& rail : rails) {
    array.push_back({{"error", rail.error.empty() ? Json(nullptr) : Json(rail.error)},
                     {"immediate_data", rail.limits.has_immediate},
                     {"inject_message_bytes", rail.limits.inject_bytes},
                     {"inject_write_bytes", rail.limits.inject_write_bytes},
                     {"message_bytes_max", rail.limits.message_bytes_max},
                     {"write_bytes_max", rail.limits.rma_bytes_max},
                     {"registers_local_memory", rail.limits.registers_local}});
  }
  return array;
}

Json limit_json(const Limit& limit) {
  return {{"soft", or_null(limit.soft)}, {"hard", or_null(limit.hard)}};
}

Json limits_json(const HostLimits& limits) {
  Json shared = nullptr;
  if (limits.shared_memory) {
    shared = {{"size_bytes", limits.shared_memory->size_bytes},
              {"free_bytes", limits.shared_memory->free_bytes}};
  }
  Json permissions = Json::array();
  for (const Permission& permission : limits.permissions) {
    permissions.push_back({{"name", permission.name},
                           {"allowed", permission.allowed},
                           {"detail", permission.detail}});
  }
  return {{"memlock_bytes", limit_json(limits.memlock)},
          {"open_files", limit_json(limits.open_files)},
          {"shared_memory", shared},
          {"permissions", permissions}};
}

}  // namespace

std::string report_json(const Report& report) {
  Json json{{"version", report.version}, {"machine", machine_json(report)}};
  json["node"] = report.node ? Json{{"hostname", report.node->hostname}, {"id", report.node->id}}
                             : Json(nullptr);
  json["fabric"] = report.limits ? Json{{"library_version", report.fabric.library_version},
                                        {"library", library_json(report.fabric.library)},
                                        {"provider", report.fabric.provider},
                                        {"providers", report.fabric.providers}}
                                 : Json(nullptr);
  json["bootstrap"] = report.bootstrap ? bootstrap_json(*report.bootstrap) : Json(nullptr);
  json["gpus"] = report.gpus ? gpus_json(*report.gpus) : Json(nullptr);
  json["pe"] = {{"index", report.pe.index},
                {"count", report.pe.count},
                {"gpu", pci_json(report.place.gpu)},
                {"rail_count", report.choice.chosen.size()},
                {"rail_count_without_gpu", report.choice_without_gpu.chosen.size()}};
  json["nics"] = nics_json(report);
  json["rails"] = rails_json(report.rails);
  json["heaps"] = report.heaps ? heap_json(*report.heaps) : Json(nullptr);
  json["counter_pages"] = report.counters ? counters_json(*report.counters) : Json(nullptr);
  json["limits"] = report.limits ? limits_json(*report.limits) : Json(nullptr);
  return json.dump(2, ' ', false, Json::error_handler_t::replace) + "\n";
}

}  // namespace weft::info
