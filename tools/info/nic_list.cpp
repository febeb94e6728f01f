#include "tools/info/nic_list.hpp"

#include <algorithm>

namespace weft::info {

using topology::Nic;
using topology::NicCandidate;
using topology::NicKind;

std::vector<NicCandidate> nic_candidates(const std::vector<fabric::NicInfo>& nics) {
  std::vector<NicCandidate> candidates;
  for (const fabric::NicInfo& nic : nics) {
    candidates.push_back({nic.name, nic.address, parse_pci_address(nic.pci), nic.rate_bits_per_s,
                          nic.up, nic.loopback});
  }
  return candidates;
}

FabricNics usable_nics(const Config& config) {
  FabricNics found;
  found.library_version = fabric::library_version();
  found.providers = fabric::available_providers();
  const std::vector<fabric::NicInfo> nics = fabric::discover(config);
  found.provider = nics.empty() ? "" : nics.front().provider;
  found.nics = nic_candidates(nics);
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
