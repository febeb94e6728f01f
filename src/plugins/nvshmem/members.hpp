// Where the PEs of the host's job run: nodes, machines and cores, as far as choosing and sharing
// NICs needs it.
//
// Built while the host connects endpoints, by the thread that it calls from; constant afterwards.
#pragma once

#include <cstdint>
#include <span>
#include <string>
#include <vector>

#include "src/base/config.hpp"
#include "src/base/ids.hpp"
#include "src/plugins/nvshmem/host_job.hpp"
#include "src/topology/cores.hpp"
#include "src/topology/node.hpp"
#include "src/transport/opening/job_site.hpp"

namespace weft::plugins::nvshmem {

class Members {
 public:
  // Collective.
  Members(HostJob& job, const Config& config);

  [[nodiscard]] transport::opening::JobSite site(const Config& config,
                                                 HostJob& job,
                                                 std::span<std::byte> region,
                                                 std::uint64_t probe_offset) const;

  [[nodiscard]] std::uint32_t node() const { return places_[me_.value].node_index; }

  [[nodiscard]] const std::string& hostname() const { return members_[me_.value].node.hostname; }

  // The same on all PEs, and no other job's.
  [[nodiscard]] std::string job_name() const;

 private:
  struct Member {
    topology::NodeIdentity node;
    topology::CoreMask cores{};
    std::uint32_t pid = 0;
  };

  [[nodiscard]] transport::opening::MachineShare machine() const;
  [[nodiscard]] static Member read(std::span<const std::byte> bytes);

  Pe me_;
  std::vector<Member> members_;  // by PE
  std::vector<topology::NodePlace> places_;
};

}  // namespace weft::plugins::nvshmem
