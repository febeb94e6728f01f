// Machines and candidates for the topology tests: the checked-in hwloc fixtures, and shapes so
// regular that they are built here.
#pragma once

#include <string>
#include <vector>

#include <fmt/format.h>

#include "src/topology/machine.hpp"
#include "src/topology/nic_choice.hpp"
#include "tests/support/paths.hpp"

namespace weft::topology {

inline std::string fixture_path(const std::string& name) {
  return fmt::format("{}/tests/fixtures/topology/{}.xml", WEFT_SOURCE_DIR, name);
}

inline Machine fixture(const std::string& name) {
  return read_machine_from_xml(fixture_path(name));
}

// What a provider of RDMA devices would offer on `machine`.
inline std::vector<NicCandidate> candidates_of(const Machine& machine, NicKind kind) {
  std::vector<NicCandidate> candidates;
  for (const Nic& nic : machine.nics) {
    if (nic.kind == kind) {
      candidates.push_back({nic.name, "", nic.pci, nic.rate_bits_per_s, nic.up, false});
    }
  }
  return candidates;
}

// `count` virtual NICs, as the lab's: nic0 (10.0.0.0), nic1 (10.0.0.1), ...
inline std::vector<NicCandidate> virtual_nics(std::size_t count) {
  std::vector<NicCandidate> candidates;
  for (std::size_t i = 0; i < count; ++i) {
    candidates.push_back(
        {fmt::format("nic{}", i), fmt::format("10.0.0.{}", i), std::nullopt, 0, true, false});
  }
  return candidates;
}

inline std::vector<PePlace> one_gpu_each(const Machine& machine) {
  std::vector<PePlace> places;
  for (const Gpu& gpu : machine.gpus) {
    places.push_back({gpu.pci, std::nullopt});
  }
  return places;
}

// One for each entry: a PE bound to the cores of that NUMA node.
inline std::vector<PePlace> on_numa_nodes(const std::vector<std::uint32_t>& nodes) {
  std::vector<PePlace> places;
  for (const std::uint32_t node : nodes) {
    places.push_back({std::nullopt, node});
  }
  return places;
}

inline std::vector<std::string> names_of(const std::vector<NicCandidate>& candidates,
                                         const NicChoice& choice) {
  std::vector<std::string> names;
  for (const std::size_t nic : choice.chosen) {
    names.push_back(candidates[nic].name);
  }
  return names;
}

}  // namespace weft::topology
