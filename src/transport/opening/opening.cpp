#include "src/transport/opening/opening.hpp"

#include <algorithm>
#include <cstdint>
#include <optional>
#include <string>
#include <utility>
#include <vector>

#include "src/base/error.hpp"
#include "src/base/log.hpp"
#include "src/base/networks.hpp"
#include "src/base/open_files.hpp"
#include "src/fabric/discovery.hpp"
#include "src/fabric/quirks.hpp"
#include "src/transport/faulty/faulty_rail.hpp"
#include "src/transport/opening/nic_selection.hpp"

namespace weft::transport::opening {
namespace {

using rails::RailsOptions;
using rails::RailsTransport;

RailsTransport::Rails open_rails(const JobSite& site, const std::vector<SelectedNic>& selected) {
  const faulty::FaultPlan faults = faulty::parse_faults(site.config.faults);
  RailsTransport::Rails rails;
  for (const auto& [nic, index] : selected) {
    rails.push_back(fabric::open_rail(nic));
    if (faults.is_active()) {
      rails.back() = std::make_unique<faulty::FaultyRail>(std::move(rails.back()), faults,
                                                          site.local_index * kRailCountMax + index);
    }
    log::info("rail {} is {} ({}, {})", rails.size() - 1, nic.name, nic.address, nic.provider);
  }
  return rails;
}

RailsOptions options_of(const JobSite& site) {
  const Config& config = site.config;
  return {
      .policy = rails::find_policy(config.rail_policy),
      .stripe_bytes_min = config.stripe_bytes_min,
      .eager_bytes_max = std::min<std::uint64_t>(config.eager_bytes_max, rails::kBatchBytes / 2),
      .rail_stall_ms = static_cast<std::uint32_t>(config.rail_stall_ms),
      .peer_lost_ms = static_cast<std::uint32_t>(config.peer_lost_ms),
      .may_spin = site.may_spin(),
      .secret = config.authenticate == "frames"
                    ? std::optional(std::string(site.bootstrap.secret()))
                    : std::nullopt,
      .unregistered_bytes = site.unregistered_bytes};
}

// Two machines on 127.0.0.1 would wait for each other until a timeout.
void check_loopback(const JobSite& site, const RailsTransport::Rails& rails) {
  const auto is_loopback = [](const auto& rail) {
    return is_loopback_address(rail->address_text());
  };
  if (!std::ranges::all_of(rails, is_loopback)) {
    return;
  }
  const Pe me = site.bootstrap.pe();
  for (std::uint32_t pe = 0; pe < site.bootstrap.pe_count(); ++pe) {
    if (const PeHost& other = site.hosts[pe]; other.network != site.hosts[me.value].network) {
      fail(
          "the only rail of this PE ({}) is {} with the address {}, which PE {} on {} cannot "
          "reach; bring a NIC up and give it an address, or name one in WEFT_NICS (weft-info "
          "lists them)",
          me.value, rails.front()->nic(), rails.front()->address_text(), pe, other.name);
    }
  }
}

// Over TCP sockets each pair of rails takes one. Said here, because a socket that cannot be made
// shows as a peer that is not reached.
void warn_of_open_files(const JobSite& site, const RailsTransport::Rails& rails) {
  if (site.local_index != 0 || !fabric::quirk_of(rails.front()->provider()).kernel_sockets) {
    return;
  }
  const auto remote = static_cast<std::uint64_t>(std::ranges::count(site.locals, false));
  const std::uint64_t sockets = remote * rails.size() * rails.size();
  if (!has_room_for_open_files(sockets)) {
    log::warn("PE {} reaches {} PEs of other nodes over up to {} sockets: {}",
              site.bootstrap.pe().value, remote, sockets, open_files_hint(sockets));
  }
}

}  // namespace

std::unique_ptr<RailsTransport> open_rails_transport(const JobSite& site) {
  if (site.bootstrap.pe_count() > rails::kPeCountMax) {
    fail(Status::InvalidArgument, "{} PEs are more than the {} that a message can name",
         site.bootstrap.pe_count(), rails::kPeCountMax);
  }
  RailsTransport::Rails rails = open_rails(site, select_nics(site));
  check_loopback(site, rails);
  warn_of_open_files(site, rails);
  return std::make_unique<RailsTransport>(options_of(site), site.bootstrap.pe(), std::move(rails),
                                          site.regions, site.probe_offset);
}

}  // namespace weft::transport::opening
