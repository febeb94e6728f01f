#include "tools/info/nic_list.hpp"

#include <algorithm>

#include "src/fabric/discovery.hpp"

namespace weft::info {

using topology::Nic;
using topology::NicCandidate;
using topology::NicKind;

FabricNics usable_nics(const Config& config) {
  FabricNics found;
  found.library_version = fabric::library_version();
  found.providers = fabric::available_providers();
  for (const fabric::NicInfo& nic : fabric::discover(config)) {
    found.provider = nic.provider;
    found.nics.push_back({nic.name, nic.address, parse_pci_address(nic.pci), nic.rate_bits_per_s,
                          nic.up, nic.loopback});
  }
  return found;
}

std::vector<NicCandidate> described_nics(const topology::Machine& machine) {
  const auto is_rdma = [](const Nic& nic) { return nic.kind == NicKind::Rdma; };
  const bool has_rdma = std::ranges::any_of(machine.nics, is_rdma);
  std::vector<NicCandidate> candidates;
  for (const Nic& nic : machine.nics) {
    if (!has_rdma || is_rdma(nic)) {
      candidates.push_back(
          {nic.name, "", nic.pci, nic.rate_bits_per_s, nic.up, nic.kind == NicKind::Loopback});
    }
  }
  return candidates;
}

}  // namespace weft::info
