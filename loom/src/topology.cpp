// The shapes. p5: AWS p5.48xlarge, whose EFA NICs are named after these buses. gh200: HPE Cray
// EX254n, four Grace-Hopper modules with a Slingshot NIC each; the domains of its NICs are assumed.
//
// Threads: constants.
#include "loom/src/topology.hpp"

#include <algorithm>
#include <array>

#include <fmt/format.h>

#include "loom/src/settings.hpp"

namespace loom {
namespace {

constexpr std::size_t kNicsOfSwitch = 4;
constexpr std::size_t kFirstBus = 79;
constexpr std::size_t kBusesOfSwitch = 17;
constexpr std::size_t kDomainsOfModule = 16;

constexpr std::array kTopologies{
    Topology{"p5", "p5.48xlarge", 2, 48, 4, kNicsOfSwitch, "10de", "2330", false},
    Topology{"gh200", "HPE Cray EX254n", 4, 72, 1, 1, "10de", "2342", true},
};

// Of a module: its NIC in the second domain, its GPU in the tenth.
PciPlace of_module(std::size_t module, std::size_t domain, std::uint8_t bus) {
  return {.domain = static_cast<std::uint16_t>(module * kDomainsOfModule + domain), .bus = bus};
}

PciPlace at_bus(std::size_t bus) {
  return {.bus = static_cast<std::uint8_t>(bus % 256)};
}

}  // namespace

std::string PciPlace::text() const {
  return fmt::format("{:04x}:{:02x}:00.0", domain, bus);
}

PciPlace Topology::bridge_of_nic(std::size_t index) const {
  return has_domains ? of_module(index, 1, 0)
                     : at_bus(kFirstBus + index / nics_of_switch * kBusesOfSwitch - 1);
}

PciPlace Topology::bridge_of_gpu(std::size_t at_switch) const {
  return has_domains ? of_module(at_switch, 9, 0) : bridge_of_nic(at_switch * nics_of_switch);
}

PciPlace Topology::nic(std::size_t index) const {
  return has_domains ? of_module(index, 1, 1) : at_bus(bus_of(index));
}

PciPlace Topology::gpu_of(std::size_t at_switch) const {
  return has_domains ? of_module(at_switch, 9, 1)
                     : at_bus(kFirstBus + at_switch * kBusesOfSwitch + nics_of_switch);
}

std::span<const Topology> topologies() {
  return kTopologies;
}

const Topology* topology_of(std::uint64_t setting) {
  return setting == 0 || setting > kTopologies.size() ? nullptr : &kTopologies[setting - 1];
}

std::uint64_t find_topology(std::string_view name) {
  if (name == "none") {
    return 0;
  }
  const auto* const found = std::ranges::find(kTopologies, name, &Topology::name);
  if (found == kTopologies.end()) {
    throw Error(
        fmt::format("there is no topology '{}'; the topologies are {}", name, topology_names()));
  }
  return static_cast<std::uint64_t>(found - kTopologies.begin()) + 1;
}

std::string topology_names() {
  std::string names = "none";
  for (const Topology& topology : kTopologies) {
    names += fmt::format(", {}", topology.name);
  }
  return names;
}

std::uint8_t bus_of(std::size_t index) {
  return at_bus(kFirstBus + index / kNicsOfSwitch * kBusesOfSwitch + index % kNicsOfSwitch).bus;
}

PciPlace nic_place(std::uint64_t topology, std::size_t index) {
  const Topology* shape = topology_of(topology);
  return shape == nullptr ? PciPlace{.bus = bus_of(index)} : shape->nic(index);
}

}  // namespace loom
