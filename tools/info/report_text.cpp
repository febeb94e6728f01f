// The report for people: 80 to 120 columns, one line for each thing found.
#include <algorithm>

#include <fmt/format.h>
#include <fmt/ranges.h>

#include "src/base/units.hpp"
#include "tools/info/gpu_report.hpp"
#include "tools/info/libraries.hpp"
#include "tools/info/report.hpp"

namespace weft::info {
namespace {

using topology::Distance;
using topology::Machine;

char letter(Distance distance) {
  switch (distance) {
    case Distance::SameSwitch:
      return 'S';
    case Distance::SameNuma:
      return 'N';
    case Distance::OtherNuma:
      return 'o';
    case Distance::Unknown:
      return '-';
  }
  return '?';
}

std::string plural(std::size_t count, std::string_view what) {
  return fmt::format("{} {}{}", count, what, count == 1 ? "" : "s");
}

std::string numa_text(const Machine& machine, const std::optional<PciAddress>& pci) {
  const auto* device = pci ? topology::find_device(machine, *pci) : nullptr;
  return device != nullptr && device->numa ? std::to_string(*device->numa) : "-";
}

std::string machine_text(const Report& report) {
  const Machine& machine = report.machine;
  std::string text = fmt::format(
      "{}: {}, {}, {}, {}\n", report.machine_source, plural(machine.core_count, "core"),
      plural(machine.pu_count, "hardware thread"), plural(machine.numa_nodes.size(), "NUMA node"),
      plural(machine.gpus.size(), "GPU"));
  if (report.node) {
    text += fmt::format("node: {} ({})\n", report.node->hostname, report.node->id);
  }
  for (std::size_t i = 0; i < machine.gpus.size(); ++i) {
    text += fmt::format("  GPU {}  {}  NUMA {}  {}\n", i, to_string(machine.gpus[i].pci),
                        numa_text(machine, machine.gpus[i].pci), machine.gpus[i].name);
  }
  return text;
}

std::string fabric_text(const FabricNics& fabric) {
  if (!fabric.library.has_found()) {
    return fmt::format(
        "libfabric: none could be opened, so PEs reach only those of their own node; install it, "
        "or name its file in WEFT_LIBFABRIC\n{}",
        refused_lines(fabric.library));
  }
  return fmt::format(
      "libfabric {}: rails use {}; it offers {}{}\n  opened: {}\n{}", fabric.library_version,
      fabric.provider.empty() ? "no provider" : fabric.provider,
      fabric.providers.empty() ? "none" : fmt::format("{}", fmt::join(fabric.providers, ", ")),
      fabric.filters, fabric.library.file, refused_lines(fabric.library));
}

// One letter for each GPU, then one for each NUMA node.
std::string distances_text(const Machine& machine, const std::optional<PciAddress>& pci) {
  std::string text;
  for (const topology::Gpu& gpu : machine.gpus) {
    text += letter(topology::distance(machine, {gpu.pci, std::nullopt}, pci));
  }
  text += machine.gpus.empty() ? "" : " ";
  for (const topology::NumaNode& node : machine.numa_nodes) {
    text += letter(topology::distance(machine, {std::nullopt, node.index}, pci));
  }
  return text;
}

// The PCI address of a candidate: its own, or that of the machine's NIC of this name.
std::optional<PciAddress> pci_of(const Machine& machine, const topology::NicCandidate& nic) {
  const topology::Nic* known = topology::find_nic(machine, nic.name);
  return nic.pci || known == nullptr ? nic.pci : known->pci;
}

std::string nics_text(const Report& report) {
  if (report.fabric.nics.empty()) {
    return "\nno NIC that a rail could use\n";
  }
  std::string text = fmt::format("\n{:<16} {:<22} {:<13} {:<5} {:<12} {:<5} {}\n", "NIC", "address",
                                 "PCI", "NUMA", "rate", "state", "distance to GPUs, NUMA nodes");
  for (const topology::NicCandidate& nic : report.fabric.nics) {
    const auto pci = pci_of(report.machine, nic);
    text += fmt::format("{:<16} {:<22} {:<13} {:<5} {:<12} {:<5} {}\n", nic.name,
                        nic.address.empty() ? "-" : nic.address, pci ? to_string(*pci) : "-",
                        numa_text(report.machine, pci), rate_text(nic.rate_bits_per_s),
                        nic.up ? "up" : "down", distances_text(report.machine, pci));
  }
  return text +
         "distance: S behind the same PCI switch, N same NUMA node, o other NUMA node, - not "
         "known\n";
}

// What a job does with a PE of which it does not know the GPU (topology::guess_gpu).
std::string without_gpu_text(const Report& report) {
  std::vector<std::string_view> names;
  for (const std::size_t nic : report.choice_without_gpu.chosen) {
    names.push_back(report.fabric.nics[nic].name);
  }
  constexpr std::size_t kNamedMax = 4;
  return fmt::format(
      "  if it uses none, or does not say which (docs/GPU.md): {}{}\n",
      plural(names.size(), "rail"),
      names.size() <= kNamedMax
          ? fmt::format(": {}", fmt::join(names, ", "))
          : fmt::format(", {} to {}{}", names.front(), names.back(),
                        report.pe.count == 1 ? ": alone on its node it takes all NICs, which "
                                               "WEFT_RAIL_COUNT_MAX limits"
                                             : ""));
}

std::string choice_text(const Report& report) {
  std::string text = fmt::format("\nPE {} of {} on this node", report.pe.index, report.pe.count);
  if (report.place.gpu) {
    text += fmt::format(", if it uses GPU {}", to_string(*report.place.gpu));
  }
  text += fmt::format(": {}\n", plural(report.choice.chosen.size(), "rail"));
  std::size_t rail = 0;
  for (std::size_t i = 0; i < report.fabric.nics.size(); ++i) {
    const topology::NicVerdict& verdict = report.choice.verdicts[i];
    text += fmt::format("  {:<8} {:<16} {}\n",
                        verdict.chosen ? fmt::format("rail {}", rail++) : "not used",
                        report.fabric.nics[i].name, verdict.reason);
  }
  // Rails that are alike take one line.
  for (std::size_t i = 0; i < report.rails.size(); ++i) {
    const std::string facts = facts_text(report.rails[i]);
    if (i == 0 || facts != facts_text(report.rails[i - 1])) {
      text += fmt::format("  tried on rail {}{}: {}\n", i,
                          i + 1 < report.rails.size() ? " and those like it" : "", facts);
    }
  }
  return text + (report.place.gpu ? without_gpu_text(report) : "");
}

std::string limit_text(const std::optional<std::uint64_t>& limit, bool is_bytes) {
  if (!limit) {
    return "unlimited";
  }
  return is_bytes ? format_bytes(*limit) : std::to_string(*limit);
}

std::string line(std::string_view name, std::string_view value) {
  return fmt::format("  {:<20} {}\n", name, value);
}

std::string limits_text(const HostLimits& limits) {
  const auto both = [](const Limit& limit, bool is_bytes) {
    return fmt::format("{} (at most {})", limit_text(limit.soft, is_bytes),
                       limit_text(limit.hard, is_bytes));
  };
  std::string text = "\nlimits\n" + line("locked memory", both(limits.memlock, true)) +
                     line("open files", both(limits.open_files, false));
  text += line("/dev/shm",
               limits.shared_memory
                   ? fmt::format("{:.0f} MiB, {:.0f} MiB free",
                                 static_cast<double>(limits.shared_memory->size_bytes) / 0x1p20,
                                 static_cast<double>(limits.shared_memory->free_bytes) / 0x1p20)
                   : "is not there");
  text += "\nkernel\n";
  for (const Permission& permission : limits.permissions) {
    text += line(permission.name,
                 fmt::format("{}: {}", permission.allowed ? "yes" : "no", permission.detail));
  }
  return text;
}

}  // namespace

std::string rate_text(std::uint64_t bits_per_s) {
  if (bits_per_s == 0) {
    return "-";
  }
  return bits_per_s >= 1'000'000'000
             ? fmt::format("{:g} Gbit/s", static_cast<double>(bits_per_s) / 1e9)
             : fmt::format("{:g} Mbit/s", static_cast<double>(bits_per_s) / 1e6);
}

std::string report_text(const Report& report) {
  return fmt::format("weft {}\n", report.version) + machine_text(report) +
         (report.limits ? fabric_text(report.fabric) : "") +
         (report.bootstrap ? bootstrap_text(*report.bootstrap) : "") +
         (report.gpus ? gpus_text(*report.gpus, report.machine.gpus.size()) : "") +
         nics_text(report) + choice_text(report) + (report.heaps ? heap_text(*report.heaps) : "") +
         (report.counters ? counters_text(*report.counters) : "") +
         (report.limits ? limits_text(*report.limits) : "");
}

}  // namespace weft::info
