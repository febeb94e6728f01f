#include "src/plugins/nvshmem/members.hpp"

#include <cstring>

#include <fmt/format.h>
#include <unistd.h>

#include "src/bootstrap/frame.hpp"

namespace weft::plugins::nvshmem {

Members::Member Members::read(std::span<const std::byte> bytes) {
  bootstrap::FieldReader reader(bytes);
  Member member;
  member.node.id = reader.text();
  member.node.hostname = reader.text();
  std::memcpy(&member.cores, reader.raw(sizeof(member.cores)).data(), sizeof(member.cores));
  member.pid = reader.u32();
  return member;
}

Members::Members(HostJob& job, const Config& config) : me_(job.pe()) {
  const topology::NodeIdentity identity = topology::node_identity();
  const topology::CoreMask cores = topology::own_cores();
  bootstrap::FieldWriter mine;
  mine.text(identity.id).text(identity.hostname);
  mine.raw(std::as_bytes(std::span(&cores, 1)));
  mine.u32(static_cast<std::uint32_t>(::getpid()));
  std::vector<std::string> identities;
  for (const bootstrap::Blob& blob : job.allgather(mine.bytes())) {
    members_.push_back(read(blob));
    identities.push_back(members_.back().node.id);
  }
  places_ = topology::group_nodes(identities, static_cast<std::uint32_t>(config.node_size));
}

transport::opening::MachineShare Members::machine() const {
  const auto mine = topology::machine_of(members_[me_.value].node.id);
  transport::opening::MachineShare share{.pe = 0, .pe_count = 0};
  std::vector<topology::CoreMask> cores;
  for (std::uint32_t pe = 0; pe < members_.size(); ++pe) {
    if (topology::machine_of(members_[pe].node.id) == mine) {
      share.pe += pe < me_.value ? 1 : 0;
      ++share.pe_count;
      cores.push_back(members_[pe].cores);
    }
  }
  share.cores = topology::core_count(cores);
  return share;
}

transport::opening::JobSite Members::site(const Config& config,
                                          HostJob& job,
                                          std::span<std::byte> region,
                                          std::uint64_t probe_offset) const {
  transport::opening::JobSite site{.config = config,
                                   .bootstrap = job,
                                   .hosts = {},
                                   .locals = {},
                                   .local_index = places_[me_.value].local_index,
                                   .machine = machine(),
                                   .regions = {region},
                                   .unregistered_bytes = 0,
                                   .probe_offset = probe_offset};
  for (std::size_t pe = 0; pe < members_.size(); ++pe) {
    const topology::NodeIdentity& host = members_[pe].node;
    site.hosts.push_back({.network = topology::network_of(host.id), .name = host.hostname});
    site.locals.push_back(places_[pe].node_index == node());
  }
  return site;
}

std::string Members::job_name() const {
  return fmt::format("nvshmem-{}-{}", members_.front().node.hostname, members_.front().pid);
}

}  // namespace weft::plugins::nvshmem
