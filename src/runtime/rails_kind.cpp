// Rails: to PEs of other nodes, over the NICs of this PE. Discovers the NICs, selects this PE's, and opens them.

#include <algorithm>
#include <cstdlib>
#include <cstring>
#include <optional>
#include <string_view>
#include <vector>

#include "src/base/error.hpp"
#include "src/base/log.hpp"
#include "src/base/pci_address.hpp"
#include "src/collectives/control.hpp"
#include "src/fabric/discovery.hpp"
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

RailsTransport::Rails open_rails(const Config& config,
                                 const topology::Machine& machine,
                                 const topology::NicQuestion& question,
                                 const std::vector<fabric::NicInfo>& nics) {
  const topology::NicChoice choice = choose_nics(machine, question);
  if (choice.chosen.empty()) {
    fail("no NIC can be a rail with WEFT_PROVIDER={}; libfabric {} offers {} and found:\n{}",
         config.provider, fabric::library_version(), fmt::join(fabric::available_providers(), ", "),
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

RailsOptions options_of(const Config& config, MachineLoad machine) {
  return {.policy = transport::rails::find_policy(config.rail_policy),
          .stripe_bytes_min = std::max<std::uint64_t>(config.stripe_bytes_min, 1024),
          .eager_bytes_max =
              std::min<std::uint64_t>(config.eager_bytes_max, transport::rails::kBatchBytes / 2),
          .rail_stall_ms = static_cast<std::uint32_t>(config.rail_stall_ms),
          .peer_lost_ms = static_cast<std::uint32_t>(config.peer_lost_ms),
          .may_spin = config.spin_us > 0 && machine.pes <= machine.cores};
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
  const std::vector<fabric::NicInfo> nics =
      fabric::discover(site.config, may_use_gpu ? fabric::DeviceUse::ByNic : fabric::DeviceUse::No);
  const std::vector<topology::NicCandidate> candidates = candidates_of(nics);
  const topology::NicQuestion question{
      .candidates = candidates,
      .places = places,
      .local_index = site.membership.place(site.bootstrap.pe()).local_index,
      .limits = topology::nic_limits(site.config)};
  return std::make_unique<RailsTransport>(
      options_of(site.config, site.membership.machine()), site.bootstrap.pe(),
      open_rails(site.config, machine, question, nics), site.regions(),
      offsetof(collectives::HeapControl, probe));
}

}  // namespace

const TransportKind kRailsKind{
    .name = "rails", .is_needed = is_needed, .reaches = reaches, .make = make, .spins = true};

}  // namespace weft::runtime
