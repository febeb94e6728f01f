#include "src/transport/opening/nic_selection.hpp"

#include <algorithm>
#include <cstdint>
#include <cstdlib>
#include <cstring>
#include <optional>
#include <span>
#include <string>
#include <utility>

#include "src/base/error.hpp"
#include "src/base/log.hpp"
#include "src/base/pci_address.hpp"
#include "src/bootstrap/frame.hpp"
#include "src/fabric/user_filters.hpp"
#include "src/gpu/inventory.hpp"
#include "src/gpu/nic_access.hpp"
#include "src/topology/gpu_guess.hpp"
#include "src/topology/machine.hpp"
#include "src/topology/nic_choice.hpp"

namespace weft::transport::opening {
namespace {

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

std::optional<PciAddress> my_gpu(const JobSite& site, const topology::Machine& machine) {
  const char* rank = std::getenv("LOCAL_RANK");  // NOLINT(concurrency-mt-unsafe): only init runs
  topology::GpuQuestion question{.setting = site.config.gpu,
                                 .machine_gpu_count = machine.gpus.size(),
                                 .local_rank = rank == nullptr ? "" : rank,
                                 .machine_pe = site.machine.pe,
                                 .machine_pe_count = site.machine.pe_count};
  if (site.config.gpu == "auto") {
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
std::vector<topology::PePlace> node_places(const JobSite& site,
                                           const std::optional<PciAddress>& gpu) {
  PlaceDescription mine{.has_gpu = gpu ? 1U : 0U, .gpu = gpu.value_or(PciAddress{})};
  if (const auto numa = topology::bound_numa_node()) {
    mine.numa = *numa;
  }
  const auto blobs = site.bootstrap.allgather(std::as_bytes(std::span(&mine, 1)));
  std::vector<topology::PePlace> places;
  for (std::size_t pe = 0; pe < blobs.size(); ++pe) {
    if (site.locals[pe]) {
      places.push_back(place_on(blobs[pe]));
    }
  }
  return places;
}

constexpr std::uint32_t kFabricsMax = 16;  // far more than any provider has

// A provider may have several fabrics over the same NICs that do not understand each other, as EFA
// has: all PEs take the best that each of them can. Collective.
std::vector<fabric::NicInfo> discover_together(const JobSite& site,
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
         "libfabric and drivers on all nodes",
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

}  // namespace

std::vector<SelectedNic> select_nics(const JobSite& site) {
  const Config& config = site.config;
  const topology::Machine machine = topology::read_machine();
  const std::vector<topology::PePlace> places = node_places(site, my_gpu(site, machine));
  // Only now is it known whether rails may have to register GPU memory.
  const bool may_use_gpu = config.device_direct != "off" && gpu::has_driver();
  const std::vector<fabric::NicInfo> nics = discover_together(
      site, {.device = may_use_gpu ? fabric::DeviceUse::ByNic : fabric::DeviceUse::No,
             .pe_count = site.bootstrap.pe_count()});
  const std::vector<topology::NicCandidate> candidates = candidates_of(nics);
  const topology::NicChoice choice =
      topology::choose_nics(machine, {.candidates = candidates,
                                      .places = places,
                                      .local_index = site.local_index,
                                      .limits = topology::nic_limits(config)});
  if (choice.chosen.empty()) {
    fail("no NIC can be a rail with WEFT_PROVIDER={}{}; libfabric {} offers {} and found:\n{}",
         config.provider, fabric::user_filter_hint(), fabric::library_version(),
         fabric::offered_text(),
         nics.empty() ? "  nothing" : topology::explain(candidates, choice));
  }
  std::vector<SelectedNic> selected;
  for (const std::size_t index : choice.chosen) {
    selected.push_back({.nic = nics[index], .index = index});
  }
  return selected;
}

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

}  // namespace weft::transport::opening
