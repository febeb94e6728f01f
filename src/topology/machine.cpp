// Properties of a Machine: pure, no hwloc. read_machine.cpp reads one.
#include "src/topology/machine.hpp"

#include <algorithm>

namespace weft::topology {
namespace {

bool share_a_bridge(const PciDevice& a, const PciDevice& b) {
  // Paths start at the root, so two that share any bridge share the first.
  return !a.bridges.empty() && !b.bridges.empty() && a.bridges.front() == b.bridges.front();
}

Distance between_nodes(const std::optional<std::uint32_t>& a,
                       const std::optional<std::uint32_t>& b) {
  if (!a || !b) {
    return Distance::Unknown;
  }
  return *a == *b ? Distance::SameNuma : Distance::OtherNuma;
}

}  // namespace

const PciDevice* find_device(const Machine& machine, const PciAddress& address) {
  const auto found = std::ranges::find(machine.pci_devices, address, &PciDevice::address);
  return found == machine.pci_devices.end() ? nullptr : &*found;
}

const Nic* find_nic(const Machine& machine, std::string_view name) {
  const auto found = std::ranges::find(machine.nics, name, &Nic::name);
  return found == machine.nics.end() ? nullptr : &*found;
}

Distance distance(const Machine& machine,
                  const PePlace& place,
                  const std::optional<PciAddress>& nic) {
  const PciDevice* device = nic ? find_device(machine, *nic) : nullptr;
  if (device == nullptr) {
    return Distance::Unknown;
  }
  const PciDevice* gpu = place.gpu ? find_device(machine, *place.gpu) : nullptr;
  if (gpu == nullptr) {
    return between_nodes(place.numa, device->numa);
  }
  return share_a_bridge(*gpu, *device) ? Distance::SameSwitch
                                       : between_nodes(gpu->numa, device->numa);
}

std::string_view to_string(Distance distance) {
  switch (distance) {
    case Distance::SameSwitch:
      return "same PCI switch";
    case Distance::SameNuma:
      return "same NUMA node";
    case Distance::OtherNuma:
      return "other NUMA node";
    case Distance::Unknown:
      return "no known place";
  }
  return "?";
}

std::string_view to_string(NicKind kind) {
  switch (kind) {
    case NicKind::Rdma:
      return "rdma";
    case NicKind::Net:
      return "net";
    case NicKind::Bridge:
      return "bridge";
    case NicKind::Internal:
      return "internal bridge";
    case NicKind::Loopback:
      return "loopback";
  }
  return "?";
}

std::vector<PePlace> assumed_places(const Machine& machine, std::uint32_t local_count) {
  std::vector<PePlace> places(local_count);
  for (std::size_t i = 0; i < places.size() && !machine.gpus.empty(); ++i) {
    // With more PEs than GPUs, several PEs share one; with fewer, the PEs spread over both sockets.
    places[i].gpu = machine.gpus[i * machine.gpus.size() / local_count].pci;
  }
  return places;
}

}  // namespace weft::topology
