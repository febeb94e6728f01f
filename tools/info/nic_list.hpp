// The NICs that rails could be opened on. The one place that asks: a Weft program and weft-info
// must see the same list. One thread.
#pragma once

#include <string>
#include <vector>

#include "src/base/config.hpp"
#include "src/fabric/discovery.hpp"
#include "src/topology/machine.hpp"
#include "src/topology/nic_choice.hpp"

namespace weft::info {

// What libfabric offers on this machine.
struct FabricNics {
  LibrarySearch library;
  std::string library_version;         // "1.17"; empty if no library serves, and the rest is too
  std::vector<std::string> providers;  // all that are here
  std::string filters;   // what of the user's limits them; see src/fabric/user_filters.hpp
  std::string provider;  // the one whose NICs follow; empty without any NIC
  std::vector<topology::NicCandidate> nics;
};

// What the NIC of a rail takes, after its claims have been tried (src/fabric/trial.hpp).
struct RailFacts {
  std::string error;  // it did not open; the rest then says nothing
  fabric::RailLimits limits;
};

// Opens each chosen NIC for a moment, in the order of `chosen`.
[[nodiscard]] std::vector<RailFacts> try_rails(const Config& config,
                                               const std::vector<std::size_t>& chosen);

// "immediate data; injects messages up to 32 B, writes up to 0 B; ..."
[[nodiscard]] std::string facts_text(const RailFacts& facts);

// The same order as `nics`.
[[nodiscard]] std::vector<topology::NicCandidate> nic_candidates(
    const std::vector<fabric::NicInfo>& nics);

// Throws Error when WEFT_PROVIDER names a provider that is not here.
[[nodiscard]] FabricNics usable_nics(const Config& config);

// Of a machine that is only described (weft-info --topology): RDMA devices where there are any,
// otherwise its network interfaces.
[[nodiscard]] std::vector<topology::NicCandidate> described_nics(const topology::Machine& machine);

}  // namespace weft::info
