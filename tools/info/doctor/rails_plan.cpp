#include "tools/info/doctor/rails_plan.hpp"

#include <algorithm>

#include "src/base/error.hpp"
#include "src/fabric/user_filters.hpp"
#include "tools/info/nic_list.hpp"

namespace weft::info {
namespace {

using topology::Machine;
using topology::NicCandidate;

// It may have addresses though it is down.
bool is_named(const topology::NicLimits& limits, const topology::Nic& nic) {
  return topology::is_named({.name = nic.name, .address = ""}, limits) ||
         std::ranges::any_of(nic.addresses, [&](const std::string& address) {
           return topology::is_named({.name = nic.name, .address = address}, limits);
         });
}

std::string up_command(const std::string& nic) {
  return fmt::format("ip link set {} up (as root), and look at its cable or its virtual peer", nic);
}

// A name where one NIC has it; an address where several entries are of one NIC.
std::string setting_of(const NicCandidate& nic, const std::vector<NicCandidate>& candidates) {
  const bool is_unique = std::ranges::count(candidates, nic.name, &NicCandidate::name) == 1;
  return is_unique || nic.address.empty() ? nic.name : nic.address;
}

}  // namespace

void report_down_nics(const Config& config, const Reporter& reporter) {
  const topology::NicLimits limits = topology::nic_limits(config);
  for (const topology::Nic& nic : topology::read_machine().nics) {
    if (nic.up) {
      continue;
    }
    // libfabric may not list it at all.
    if (is_named(limits, nic)) {
      reporter.problem(fmt::format("{}, named in WEFT_NICS, is down", nic.name),
                       up_command(nic.name) + ", or take it out of WEFT_NICS");
    } else if (nic.pci && limits.include.empty()) {
      reporter.note(fmt::format("{} is down and carries nothing", nic.name), up_command(nic.name));
    }
  }
}

std::vector<std::string> plan_rails(const Config& config,
                                    const DoctorOptions& options,
                                    const Reporter& reporter) {
  const Machine machine = topology::read_machine();
  const topology::NicLimits limits = topology::nic_limits(config);
  if (!fabric::open_libfabric(config).has_found() && config.libfabric.empty()) {
    reporter.problem(
        "libfabric cannot be opened, so PEs of other nodes cannot be reached",
        "install libfabric, or name its file in WEFT_LIBFABRIC; weft-info lists what was tried");
    return {};
  }
  std::vector<NicCandidate> candidates;
  topology::NicChoice choice;
  try {
    candidates = nic_candidates(fabric::discover(config));
    const auto places = topology::assumed_places(machine, options.pe.count);
    choice = topology::choose_nics(machine, {candidates, places, options.pe.index, limits});
  } catch (const Error& error) {
    // A NIC that is down may be missing from libfabric's list, and is told of already.
    if (std::ranges::none_of(machine.nics, [&limits](const topology::Nic& nic) {
          return !nic.up && is_named(limits, nic);
        })) {
      reporter.problem(error.what(),
                       "unset WEFT_PROVIDER and WEFT_NICS, or set them to what weft-info lists; or "
                       "install a libfabric that has the provider");
    }
    return {};
  }
  if (choice.chosen.empty()) {
    reporter.problem(
        fmt::format(
            "no NIC can be a rail: {}{}",
            candidates.empty() ? "libfabric finds none" : topology::explain(candidates, choice),
            fabric::user_filter_hint()),
        "bring a NIC up and give it an address (ip link, ip address), or name one in WEFT_NICS");
  }
  std::vector<std::string> planned;
  for (std::size_t i = 0; i < candidates.size(); ++i) {
    const bool is_wanted = options.all_nics && candidates[i].up && !candidates[i].loopback;
    if (choice.verdicts[i].chosen || is_wanted) {
      planned.push_back(setting_of(candidates[i], candidates));
    }
  }
  return planned;
}

}  // namespace weft::info
