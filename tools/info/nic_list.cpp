#include "tools/info/nic_list.hpp"

#include <algorithm>
#include <memory>

#include <fmt/format.h>

#include "src/base/error.hpp"
#include "src/base/units.hpp"
#include "src/fabric/trial.hpp"
#include "src/fabric/user_filters.hpp"

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
  found.library = fabric::open_libfabric(config);
  if (!found.library.has_found()) {
    return found;
  }
  found.library_version = fabric::library_version();
  found.providers = fabric::available_providers();
  found.filters = fabric::user_filter_hint();
  const std::vector<fabric::NicInfo> nics = fabric::discover(config);
  found.provider = nics.empty() ? "" : nics.front().provider;
  found.nics = nic_candidates(nics);
  return found;
}

std::vector<RailFacts> try_rails(const Config& config, const std::vector<std::size_t>& chosen) {
  const std::vector<fabric::NicInfo> nics = fabric::discover(config);
  std::vector<RailFacts> facts;
  for (const std::size_t index : chosen) {
    RailFacts found;
    try {
      fabric::TrialMemory memory;
      const std::unique_ptr<fabric::Rail> rail = fabric::open_rail(nics.at(index));
      fabric::try_claims(*rail, memory);
      found.limits = rail->limits();
    } catch (const Error& error) {
      found.error = error.what();
    }
    facts.push_back(std::move(found));
  }
  return facts;
}

std::string facts_text(const RailFacts& facts) {
  if (!facts.error.empty()) {
    return "does not open: " + facts.error;
  }
  const fabric::RailLimits& limits = facts.limits;
  const auto most = [](std::size_t bytes) {
    return bytes >= std::size_t{1} << 40U ? std::string("any size") : format_bytes(bytes);
  };
  return fmt::format(
      "{}; injects messages up to {}, writes up to {}; sends up to {}, writes up to {}; {}",
      limits.has_immediate ? "immediate data" : "no immediate data: signals wait for their data",
      format_bytes(limits.inject_bytes), format_bytes(limits.inject_write_bytes),
      most(limits.message_bytes_max), most(limits.rma_bytes_max),
      limits.registers_local ? "local memory must be registered"
                             : "local memory needs no registration");
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
