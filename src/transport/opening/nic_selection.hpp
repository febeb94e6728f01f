// Which NICs become the rails of a PE: finds those that libfabric can open, agrees with the other
// PEs on a fabric that all of them offer, and takes this PE's by the distance to its GPU and cores
// (topology/nic_choice.hpp).
//
// Control path; one thread of each PE.
#pragma once

#include <cstddef>
#include <vector>

#include "src/base/config.hpp"
#include "src/fabric/discovery.hpp"
#include "src/transport/opening/job_site.hpp"

namespace weft::transport::opening {

struct SelectedNic {
  fabric::NicInfo nic;
  std::size_t index = 0;  // among all that this PE has found
};

// Rail 0 first; never empty. Collective over all PEs of the job. Throws Error if no NIC can be a
// rail, with the reason for each, or if the PEs have no fabric in common.
[[nodiscard]] std::vector<SelectedNic> select_nics(const JobSite& site);

// For a job without rails: one warning if what the user says about NICs, provider or libfabric
// would be refused in a job that has them. Nothing is opened that was not named.
void check_rail_settings(const Config& config);

}  // namespace weft::transport::opening
