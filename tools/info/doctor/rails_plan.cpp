#include "tools/info/doctor/rails_plan.hpp"

#include <algorithm>
#include <optional>

#include "src/base/error.hpp"
#include "tools/info/nic_list.hpp"

namespace weft::info {
namespace {

using topology::Machine;
using topology::NicCandidate;

bool is_named(const topology::NicLimits& limits, const std::string& nic) {
  return std::ranges::find(limits.include, nic) != limits.include.end();
}

std::string up_command(const std::string& nic) {
  return fmt::format("ip link set {} up (as root), and look at its cable or its virtual peer", nic);
}

// NICs of the machine that no rail can use because they are down: libfabric may not list them at all.
void report_down(const Machine& machine,
                 const topology::NicLimits& limits,
                 const Reporter& reporter) {
  for (const topology::Nic& nic : machine.nics) {
    if (nic.up) {
      continue;
    }
    if (is_named(limits, nic.name)) {
      reporter.problem(fmt::format("{}, named in WEFT_NICS, is down", nic.name),
                       up_command(nic.name) + ", or take it out of WEFT_NICS");
    } else if (nic.pci && limits.include.empty()) {
      reporter.note(fmt::format("{} is down and carries nothing", nic.name), up_command(nic.name));
    }
  }
}

std::optional<std::vector<fabric::NicInfo>> discover(const Config& config,
                                                     const Reporter& reporter) {
  try {
    return fabric::discover(config);
  } catch (const Error& error) {
    reporter.problem(error.what(),
                     "unset WEFT_PROVIDER, set it to one of those, or install a "
                     "libfabric that has it");
    return std::nullopt;
  }
}

std::optional<topology::NicChoice> choose(const Machine& machine,
                                          const topology::NicQuestion& question,
                                          const Reporter& reporter) {
  try {
    return topology::choose_nics(machine, question);
  } catch (const Error& error) {
    // A NIC that is down may be missing from libfabric's list, and is told of already.
    const bool is_down = std::ranges::any_of(machine.nics, [&](const topology::Nic& nic) {
      return !nic.up && is_named(question.limits, nic.name);
    });
    if (!is_down) {
      reporter.problem(error.what(),
                       "set WEFT_NICS to names or addresses that weft-info lists, or "
                       "unset it");
    }
    return std::nullopt;
  }
}

}  // namespace

std::vector<fabric::NicInfo> plan_rails(const Config& config,
                                        const Machine& machine,
                                        const NodeQuestion& question,
                                        bool all_nics,
                                        const Reporter& reporter) {
  const topology::NicLimits limits = topology::nic_limits(config);
  report_down(machine, limits, reporter);
  const auto nics = discover(config, reporter);
  if (!nics) {
    return {};
  }
  const std::vector<NicCandidate> candidates = nic_candidates(*nics);
  const auto choice =
      choose(machine, {candidates, question.places, question.local_index, limits}, reporter);
  if (!choice) {
    return {};
  }
  if (choice->chosen.empty()) {
    reporter.problem(
        fmt::format("no NIC can be a rail: {}", nics->empty()
                                                    ? "libfabric finds none"
                                                    : topology::explain(candidates, *choice)),
        "bring a NIC up and give it an address (ip link, ip address), or name one in WEFT_NICS");
  }
  std::vector<fabric::NicInfo> planned;
  for (std::size_t i = 0; i < nics->size(); ++i) {
    const bool is_chosen = choice->verdicts[i].chosen;
    if (is_chosen || (all_nics && candidates[i].up && !candidates[i].loopback)) {
      planned.push_back((*nics)[i]);
    }
  }
  return planned;
}

}  // namespace weft::info
