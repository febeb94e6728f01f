// Rails: to PEs of other nodes, over the NICs of this PE. Discovers the NICs, selects this PE's,
// and opens them.

#include <algorithm>
#include <cstdlib>
#include <cstring>
#include <optional>
#include <string>
#include <string_view>
#include <utility>
#include <vector>

#include "src/base/error.hpp"
#include "src/base/log.hpp"
#include "src/base/networks.hpp"
#include "src/base/open_files.hpp"
#include "src/base/pci_address.hpp"
#include "src/bootstrap/frame.hpp"
#include "src/collectives/control.hpp"
#include "src/fabric/discovery.hpp"
#include "src/fabric/quirks.hpp"
#include "src/fabric/user_filters.hpp"
#include "src/gpu/inventory.hpp"
#include "src/gpu/nic_access.hpp"
#include "src/runtime/transport_kinds.hpp"
#include "src/topology/gpu_guess.hpp"
#include "src/topology/machine.hpp"
#include "src/topology/nic_choice.hpp"
#include "src/transport/faulty/faulty_rail.hpp"
#include "src/transport/rails/rails_transport.hpp"

namespace weft::runtime {
namespace {

using transport::rails::RailsOptions;
using transport::rails::RailsTransport;

std::vector<topology::NicCandidate> candidates_of(const std::vector<fabric::NicInfo>& nics) {
  std::vector<topology::NicCandidate> candidates;
  candidates.reserve(nics.size());
  for (const fabric::NicInfo& nic : nics) {
    candidates.push_back({.name = nic.name,
                          .address = nic.address,
                          .pci = parse_pci_address(nic.pci),
                          .rate_bits_per_s = nic.rate_bits_per_s,
                          .up = nic.up,
                          .loopback = nic.loopback});
  }
  return candidates;
}

// Where a PE runs, as sent to the others.
struct PlaceDescription {
  std::int64_t numa = -1;  // -1: not bound
  std::uint32_t has_gpu = 0;
  PciAddress gpu;
};

topology::PePlace place_on(const bootstrap::Blob& blob) {
  PlaceDescription description;
  std::memcpy(&description, blob.data(), std::min(blob.size(), sizeof(description)));
  topology::PePlace place;
  if (description.has_gpu != 0) {
    place.gpu = description.gpu;
  }
  if (description.numa >= 0) {
    place.numa = static_cast<std::uint32_t>(description.numa);
  }
  return place;
}

std::optional<PciAddress> my_gpu(const Config& config,
                                 const Membership& membership,
                                 const topology::Machine& machine) {
  const char* rank = std::getenv("LOCAL_RANK");  // NOLINT(concurrency-mt-unsafe): only init runs
  topology::GpuQuestion question{.setting = config.gpu,
                                 .machine_gpu_count = machine.gpus.size(),
                                 .local_rank = rank == nullptr ? "" : rank,
                                 .machine_pe = membership.machine_pe(),
                                 .machine_pe_count = membership.machine().pes};
  if (config.gpu == "auto") {
    const gpu::VisibleGpus visible = gpu::find_visible_gpus();
    for (const std::string& pci : visible.pci) {
      question.visible.push_back(parse_pci_address(pci).value_or(PciAddress{}));
    }
    question.current = visible.current;
  }
  const topology::GpuGuess guess = topology::guess_gpu(question);
  log::info("NICs are chosen for {}: {}", guess.gpu ? "GPU " + to_string(*guess.gpu) : "no GPU",
            guess.reason);
  return guess.gpu;
}

// The PEs of this node exchange where they run: the NICs are assigned accordingly.
std::vector<topology::PePlace> node_places(bootstrap::Bootstrap& bootstrap,
                                           const Membership& membership,
                                           const std::optional<PciAddress>& gpu) {
  PlaceDescription mine{.has_gpu = gpu ? 1U : 0U, .gpu = gpu.value_or(PciAddress{})};
  if (const auto numa = topology::bound_numa_node()) {
    mine.numa = *numa;
  }
  const auto blobs = bootstrap.allgather(std::as_bytes(std::span(&mine, 1)));
  const std::vector<bool> locals = membership.locals();
  std::vector<topology::PePlace> places;
  for (std::size_t pe = 0; pe < blobs.size(); ++pe) {
    if (locals[pe]) {
      places.push_back(place_on(blobs[pe]));
    }
  }
  return places;
}

constexpr std::uint32_t kFabricsMax = 16;  // far more than any provider has

// A provider may have several fabrics over the same NICs that do not understand each other, as EFA
// has: all PEs take the best that each of them can. Collective.
std::vector<fabric::NicInfo> discover_together(const TransportSite& site,
                                               fabric::DiscoverRequest request) {
  std::vector<fabric::NicInfo> nics = fabric::discover(site.config, request);
  bootstrap::FieldWriter mine;
  const std::vector<std::string> fabrics = fabric::fabrics_of(nics);
  mine.u32(static_cast<std::uint32_t>(fabrics.size()));
  for (const std::string& fabric : fabrics) {
    mine.text(fabric);
  }
  std::vector<std::vector<std::string>> offers{fabrics};
  for (const bootstrap::Blob& blob : site.bootstrap.allgather(mine.bytes())) {
    bootstrap::FieldReader reader(blob);
    std::vector<std::string> offer(std::min(reader.u32(), kFabricsMax));
    std::ranges::generate(offer, [&reader] { return reader.text(); });
    if (!offer.empty()) {  // of another provider, which RailsTransport::connect reports
      offers.push_back(std::move(offer));
    }
  }
  if (fabrics.empty()) {
    return nics;
  }
  const std::string common = fabric::common_fabric(offers);
  if (common.empty()) {
    fail(Status::Mismatch,
         "the NICs of the PEs have no fabric of {} in common (this PE's: {}); use the same "
         "libfabric "
         "and drivers on all nodes",
         nics.front().provider, fmt::join(fabrics, ", "));
  }
  if (common != nics.front().fabric) {
    log::info("rails use the fabric {} instead of {}, which not all PEs offer", common,
              nics.front().fabric);
    request.fabric = common;
    nics = fabric::discover(site.config, request);
  }
  return nics;
}

RailsTransport::Rails open_rails(const Config& config,
                                 const topology::Machine& machine,
                                 const topology::NicQuestion& question,
                                 const std::vector<fabric::NicInfo>& nics) {
  const topology::NicChoice choice = choose_nics(machine, question);
  if (choice.chosen.empty()) {
    fail("no NIC can be a rail with WEFT_PROVIDER={}{}; libfabric {} offers {} and found:\n{}",
         config.provider, fabric::user_filter_hint(), fabric::library_version(),
         fabric::offered_text(),
         nics.empty() ? "  nothing" : topology::explain(question.candidates, choice));
  }
  const transport::faulty::FaultPlan faults = transport::faulty::parse_faults(config.faults);
  RailsTransport::Rails rails;
  for (const std::size_t index : choice.chosen) {
    rails.push_back(fabric::open_rail(nics[index]));
    if (faults.is_active()) {
      rails.back() = std::make_unique<transport::faulty::FaultyRail>(
          std::move(rails.back()), faults, question.local_index * kRailCountMax + index);
    }
    log::info("rail {} is {} ({}, {})", rails.size() - 1, nics[index].name, nics[index].address,
              nics[index].provider);
  }
  return rails;
}

RailsOptions options_of(const TransportSite& site) {
  const Config& config = site.config;
  const MachineLoad machine = site.membership.machine();
  return {.policy = transport::rails::find_policy(config.rail_policy),
          .stripe_bytes_min = config.stripe_bytes_min,
          .eager_bytes_max =
              std::min<std::uint64_t>(config.eager_bytes_max, transport::rails::kBatchBytes / 2),
          .rail_stall_ms = static_cast<std::uint32_t>(config.rail_stall_ms),
          .peer_lost_ms = static_cast<std::uint32_t>(config.peer_lost_ms),
          .may_spin = config.spin_us > 0 && machine.pes <= machine.cores,
          .secret = config.authenticate == "frames"
                        ? std::optional(std::string(site.bootstrap.secret()))
                        : std::nullopt,
          .unregistered_bytes = collectives::kNodeControlBytes};
}

// A network namespace of a kernel, in which loopback addresses mean the same.
std::string network_of(const Member& member) {
  return member.node_identity.substr(0, member.node_identity.find("/pid:"));
}

// Two machines on 127.0.0.1 would wait for each other until a timeout.
void check_loopback(const TransportSite& site, const RailsTransport::Rails& rails) {
  const auto is_loopback = [](const auto& rail) {
    return is_loopback_address(rail->address_text());
  };
  if (!std::ranges::all_of(rails, is_loopback)) {
    return;
  }
  const std::string mine = network_of(site.membership.member(site.bootstrap.pe()));
  for (std::uint32_t pe = 0; pe < site.bootstrap.pe_count(); ++pe) {
    if (const Member& other = site.membership.member(Pe(pe)); network_of(other) != mine) {
      fail(
          "the only rail of this PE ({}) is {} with the address {}, which PE {} on {} cannot "
          "reach; "
          "bring a NIC up and give it an address, or name one in WEFT_NICS (weft-info lists them)",
          site.bootstrap.pe().value, rails.front()->nic(), rails.front()->address_text(), pe,
          other.hostname);
    }
  }
}

// Over TCP sockets each pair of rails takes one. Said here, because a socket that cannot be made
// shows as a peer that is not reached.
void warn_of_open_files(const TransportSite& site, const RailsTransport::Rails& rails) {
  const bool is_first = site.membership.place(site.bootstrap.pe()).local_index == 0;
  if (!is_first || !fabric::quirk_of(rails.front()->provider()).kernel_sockets) {
    return;
  }
  const auto locals = site.membership.locals();
  const auto remote = static_cast<std::uint64_t>(std::ranges::count(locals, false));
  const std::uint64_t sockets = remote * rails.size() * rails.size();
  if (!has_room_for_open_files(sockets)) {
    log::warn("PE {} reaches {} PEs of other nodes over up to {} sockets: {}",
              site.bootstrap.pe().value, remote, sockets, open_files_hint(sockets));
  }
}

bool is_needed(const TransportSite& site) {
  return site.membership.node_count() > 1;
}

std::vector<bool> reaches(const TransportSite& site) {
  std::vector<bool> others = site.membership.locals();
  others.flip();
  return others;
}

std::unique_ptr<transport::Transport> make(const TransportSite& site) {
  if (site.bootstrap.pe_count() > transport::rails::kPeCountMax) {
    fail(Status::InvalidArgument, "{} PEs are more than the {} that a message can name",
         site.bootstrap.pe_count(), transport::rails::kPeCountMax);
  }
  const topology::Machine machine = topology::read_machine();
  const std::vector<topology::PePlace> places =
      node_places(site.bootstrap, site.membership, my_gpu(site.config, site.membership, machine));
  // Only now is it known whether rails may have to register GPU memory.
  const bool may_use_gpu = site.config.device_direct != "off" && gpu::has_driver();
  const std::vector<fabric::NicInfo> nics = discover_together(
      site, {.device = may_use_gpu ? fabric::DeviceUse::ByNic : fabric::DeviceUse::No,
             .pe_count = site.bootstrap.pe_count()});
  const std::vector<topology::NicCandidate> candidates = candidates_of(nics);
  const topology::NicQuestion question{
      .candidates = candidates,
      .places = places,
      .local_index = site.membership.place(site.bootstrap.pe()).local_index,
      .limits = topology::nic_limits(site.config)};
  RailsTransport::Rails rails = open_rails(site.config, machine, question, nics);
  check_loopback(site, rails);
  warn_of_open_files(site, rails);
  return std::make_unique<RailsTransport>(options_of(site), site.bootstrap.pe(), std::move(rails),
                                          site.regions(),
                                          offsetof(collectives::HeapControl, remote.probe));
}

}  // namespace

void check_rail_settings(const Config& config) {
  if (config.libfabric.empty() && config.provider == "auto" && config.nics.empty()) {
    return;
  }
  try {
    const std::vector<fabric::NicInfo> nics = fabric::discover(config);
    const std::vector<topology::NicCandidate> candidates = candidates_of(nics);
    const std::vector<topology::PePlace> places(1);
    static_cast<void>(topology::choose_nics(
        topology::read_machine(),
        {.candidates = candidates, .places = places, .limits = topology::nic_limits(config)}));
  } catch (const Error& error) {
    log::warn("{}; this job has one node and needs no NIC, so it goes on", error.what());
  }
}

const TransportKind kRailsKind{
    .name = "rails", .is_needed = is_needed, .reaches = reaches, .make = make, .spins = true};

}  // namespace weft::runtime
