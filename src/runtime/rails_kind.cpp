// Rails: to PEs of other nodes, over the NICs of this PE. Tells transport/opening what it has to
// know of the job.

#include <cstddef>
#include <cstdint>
#include <memory>
#include <vector>

#include "src/collectives/control.hpp"
#include "src/runtime/transport_kinds.hpp"
#include "src/topology/node.hpp"
#include "src/transport/opening/opening.hpp"

namespace weft::runtime {
namespace {

using transport::opening::JobSite;

bool is_needed(const TransportSite& site) {
  return site.membership.node_count() > 1;
}

std::vector<bool> reaches(const TransportSite& site) {
  std::vector<bool> others = site.membership.locals();
  others.flip();
  return others;
}

JobSite job_site_of(const TransportSite& site) {
  const Membership& membership = site.membership;
  const MachineLoad load = membership.machine();
  JobSite job{.config = site.config,
              .bootstrap = site.bootstrap,
              .hosts = {},
              .locals = membership.locals(),
              .local_index = membership.place(site.bootstrap.pe()).local_index,
              .machine = {.pe = membership.machine_pe(), .pe_count = load.pes, .cores = load.cores},
              .regions = site.regions(),
              .unregistered_bytes = collectives::kNodeControlBytes,
              .probe_offset = offsetof(collectives::HeapControl, remote.probe)};
  for (std::uint32_t pe = 0; pe < site.bootstrap.pe_count(); ++pe) {
    const Member& member = membership.member(Pe(pe));
    job.hosts.push_back(
        {.network = topology::network_of(member.node_identity), .name = member.hostname});
  }
  return job;
}

std::unique_ptr<transport::Transport> make(const TransportSite& site) {
  return transport::opening::open_rails_transport(job_site_of(site));
}

}  // namespace

const TransportKind kRailsKind{
    .name = "rails", .is_needed = is_needed, .reaches = reaches, .make = make, .spins = true};

}  // namespace weft::runtime
