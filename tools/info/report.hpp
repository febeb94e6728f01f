// What weft-info found, as one value, and its two printed forms. One thread.
#pragma once

#include <cstdint>
#include <optional>
#include <string>
#include <vector>

#include "src/base/config.hpp"
#include "src/gpu/inventory.hpp"
#include "src/topology/machine.hpp"
#include "src/topology/nic_choice.hpp"
#include "src/topology/node.hpp"
#include "tools/info/bootstrap_found.hpp"
#include "tools/info/counters_report.hpp"
#include "tools/info/heap_report.hpp"
#include "tools/info/host_limits.hpp"
#include "tools/info/nic_list.hpp"

namespace weft::info {

// PE `index` of `count` on one node.
struct PeQuestion {
  std::uint32_t index = 0;
  std::uint32_t count = 1;
};

struct Report {
  std::string version;
  std::string machine_source;  // "this machine" or the XML file
  topology::Machine machine;
  std::optional<topology::NodeIdentity> node;  // of this machine only
  FabricNics fabric;                           // of a machine in a file, only its NICs
  PeQuestion pe;
  topology::PePlace place;  // assumed, see topology::assumed_places
  topology::NicChoice choice;
  topology::NicChoice choice_without_gpu;  // if no PE of the node uses one
  std::vector<RailFacts> rails;            // of the chosen NICs of this machine
  std::optional<HostLimits> limits;        // of this machine only
  std::optional<gpu::Inventory> gpus;      // as are the next
  std::optional<BootstrapFound> bootstrap;
  std::optional<HeapReport> heaps;
  std::optional<CountersReport> counters;
};

// `topology_file` empty: this machine. Throws Error for a file that hwloc cannot read, a PE that is
// out of range and a WEFT_NICS that names no NIC.
[[nodiscard]] Report make_report(const Config& config,
                                 PeQuestion pe,
                                 const std::string& topology_file);

// The variables of this process.
[[nodiscard]] Lookup environment();

[[nodiscard]] std::string report_text(const Report& report);
[[nodiscard]] std::string report_json(const Report& report);

// "400 Gbit/s", "100 Mbit/s", "-" when it is not known.
[[nodiscard]] std::string rate_text(std::uint64_t bits_per_s);

}  // namespace weft::info
