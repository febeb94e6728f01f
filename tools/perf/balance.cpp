#include "tools/perf/balance.hpp"

#include <algorithm>
#include <map>
#include <tuple>
#include <utility>

#include <fmt/format.h>

#include "tools/balance/max_over_mean.hpp"

namespace weft::perf {
namespace {

constexpr std::uint64_t kTakesPartShare = 20;

using NicKey = std::tuple<std::uint32_t, std::string, std::string>;

NicBytes sum_of(const PeReport& pe) {
  NicBytes sum;
  for (const RailReport& rail : pe.rails) {
    sum.add(rail.bytes);
  }
  return sum;
}

NicBytes busiest(const std::vector<PeReport>& pes) {
  NicBytes most;
  for (const PeReport& pe : pes) {
    const NicBytes sum = sum_of(pe);
    most = {.tx_bytes = std::max(most.tx_bytes, sum.tx_bytes),
            .rx_bytes = std::max(most.rx_bytes, sum.rx_bytes)};
  }
  return most;
}

bool takes_part(std::uint64_t bytes, std::uint64_t most) {
  return bytes > 0 && bytes >= most / kTakesPartShare;
}

std::vector<NicReport> merge_rails(const std::vector<PeReport>& pes) {
  const NicBytes most = busiest(pes);
  std::map<NicKey, std::size_t> places;
  std::vector<NicReport> nics;
  for (std::uint32_t pe = 0; pe < pes.size(); ++pe) {
    const NicBytes sum = sum_of(pes[pe]);
    for (const RailReport& rail : pes[pe].rails) {
      const auto [place, is_new] =
          places.try_emplace(NicKey{pes[pe].node, rail.nic, rail.address}, nics.size());
      if (is_new) {
        nics.push_back(
            {.node = pes[pe].node, .nic = rail.nic, .address = rail.address, .rate = rail.rate});
      }
      NicReport& nic = nics[place->second];
      nic.pes.push_back(pe);
      nic.library.add(rail.bytes);
      nic.retries += rail.retries;
      nic.errors += rail.errors;
      nic.sends = nic.sends || takes_part(sum.tx_bytes, most.tx_bytes);
      nic.receives = nic.receives || takes_part(sum.rx_bytes, most.rx_bytes);
    }
  }
  return nics;
}

// The kernel's bytes belong to a row only if no other row is the same device.
void add_kernel_bytes(const std::vector<PeReport>& pes, std::vector<NicReport>& nics) {
  std::map<std::pair<std::string, std::string>, int> rows_of_device;
  for (const NicReport& nic : nics) {
    ++rows_of_device[{pes[nic.pes.front()].host_key, nic.nic}];
  }
  for (NicReport& nic : nics) {
    const PeReport& pe = pes[nic.pes.front()];
    if (rows_of_device[{pe.host_key, nic.nic}] != 1) {
      continue;
    }
    const auto found = pe.devices.find(nic.nic);
    if (found != pe.devices.end()) {
      nic.kernel = found->second;
    }
  }
}

std::vector<std::vector<std::uint64_t>> bytes_between(const std::vector<PeReport>& pes) {
  std::vector<std::vector<std::uint64_t>> bytes(pes.size(),
                                                std::vector<std::uint64_t>(pes.size(), 0));
  for (std::size_t pe = 0; pe < pes.size(); ++pe) {
    for (const RailChange& change : pes[pe].changes) {
      if (change.rail.pe != pe) {
        bytes[pe][change.rail.pe] += change.bytes.tx_bytes;
        bytes[change.rail.pe][pe] += change.bytes.rx_bytes;
      }
    }
  }
  return bytes;
}

// What each PE sent and received in the measured part, over which rows of the NICs.
std::vector<PeLoad> loads_of(const std::vector<PeReport>& pes, const std::vector<NicReport>& nics) {
  std::vector<PeLoad> loads(pes.size());
  for (std::size_t nic = 0; nic < nics.size(); ++nic) {
    for (const std::uint32_t pe : nics[nic].pes) {
      if (loads[pe].nics.empty() || loads[pe].nics.back() != nic) {
        loads[pe].nics.push_back(nic);
      }
    }
  }
  for (std::size_t pe = 0; pe < pes.size(); ++pe) {
    for (const RailChange& change : pes[pe].measured.changes) {
      if (change.rail.pe != pe) {
        loads[pe].bytes.add(change.bytes);
        loads[change.rail.pe].bytes.add(change.bytes.at_other_end());
      }
    }
  }
  return loads;
}

void add_share(const std::vector<PeReport>& pes, BalanceReport& report) {
  double taken_s = 0;
  for (const PeReport& pe : pes) {
    taken_s = std::max(taken_s, pe.measured.seconds);
  }
  if (taken_s == 0) {
    report.share_unknown_because = "this subcommand does not measure it";
    return;
  }
  std::vector<double> rates;
  for (const NicReport& nic : report.nics) {
    if (nic.rate.bits_per_s == 0) {
      report.share_unknown_because = nic.rate.unknown_because + "; --nic-rate says it";
      return;
    }
    rates.push_back(static_cast<double>(nic.rate.bits_per_s) / 8 * nic.rate.payload_share);
  }
  report.share = share_of_rails(loads_of(pes, report.nics), rates, taken_s);
}

struct Directions {
  std::vector<std::uint64_t> tx;
  std::vector<std::uint64_t> rx;

  void add(const NicReport& nic, const NicBytes& bytes) {
    if (nic.sends) {
      tx.push_back(bytes.tx_bytes);
    }
    if (nic.receives) {
      rx.push_back(bytes.rx_bytes);
    }
  }

  [[nodiscard]] BalanceReport::Ratios ratios() const {
    return {.tx = max_over_mean(tx), .rx = max_over_mean(rx)};
  }
};

std::string bytes_or_dash(const std::optional<NicBytes>& bytes, Direction direction) {
  return bytes ? fmt::format("{}", (*bytes).*direction) : std::string("-");
}

std::string ratio_or_dash(const std::optional<double>& ratio) {
  return ratio ? fmt::format("{:.3f}", *ratio) : std::string("-");
}

std::string evenness_text(const Evenness& evenness) {
  return evenness.count == 0 ? "-"
                             : fmt::format("{:.2f} ({:.2f})", evenness.mean(), evenness.worst);
}

std::string share_text(const BalanceReport& report) {
  return report.share
             ? fmt::format("share of the rails {:.3f}: needed {:.3f} s, taken {:.3f} s\n",
                           report.share->share(), report.share->needed_s, report.share->taken_s)
             : fmt::format("share of the rails -: {}\n", report.share_unknown_because);
}

std::string moments_line(const std::string& interval, const MomentReport::Counters& counters) {
  const MomentReport::Directions& library = counters.library.of_pe;
  const MomentReport::Directions& kernel = counters.kernel.of_pe;
  return fmt::format(
      "max/mean of a PE's NICs each {}, mean (worst): tx library {} kernel {}   rx library {} "
      "kernel "
      "{}\n",
      interval, evenness_text(library.tx), evenness_text(kernel.tx), evenness_text(library.rx),
      evenness_text(kernel.rx));
}

std::string moments_text(const MomentReport& moments) {
  return moments.interval_s == 0
             ? std::string()
             : moments_line(fmt::format("{:.0f} ms", moments.interval_s * 1e3), moments.by_time) +
                   moments_line("step", moments.by_step);
}

}  // namespace

void MomentReport::Directions::add(const Directions& other) {
  tx.add(other.tx);
  rx.add(other.rx);
}

void MomentReport::Groups::add(const Groups& other) {
  of_pe.add(other.of_pe);
  of_node.add(other.of_node);
}

BalanceReport make_balance_report(const std::vector<PeReport>& pes) {
  BalanceReport report{.nics = merge_rails(pes), .peers = bytes_between(pes)};
  add_kernel_bytes(pes, report.nics);
  Directions library;
  Directions kernel;
  bool kernel_knows_all = true;
  for (const NicReport& nic : report.nics) {
    library.add(nic, nic.library);
    kernel_knows_all = kernel_knows_all && nic.kernel.has_value();
    kernel.add(nic, nic.kernel.value_or(NicBytes{}));
  }
  report.library = library.ratios();
  if (kernel_knows_all) {
    report.kernel = kernel.ratios();
  }
  if (!report.nics.empty()) {
    add_share(pes, report);
  }
  return report;
}

std::string format_balance(const BalanceReport& report) {
  constexpr const char* kRow = "{:<6}{:<14}{:<16}{:>14}{:>14}{:>14}{:>14}\n";
  std::string text = "#nics\n";
  text += fmt::format(kRow, "host", "NIC", "address", "TX library", "TX kernel", "RX library",
                      "RX kernel");
  for (const NicReport& nic : report.nics) {
    text += fmt::format(kRow, nic.node, nic.nic, nic.address, nic.library.tx_bytes,
                        bytes_or_dash(nic.kernel, &NicBytes::tx_bytes), nic.library.rx_bytes,
                        bytes_or_dash(nic.kernel, &NicBytes::rx_bytes));
  }
  text += share_text(report) + moments_text(report.moments);
  text += fmt::format("tx max/mean library {} kernel {}   rx max/mean library {} kernel {}\n",
                      ratio_or_dash(report.library.tx), ratio_or_dash(report.kernel.tx),
                      ratio_or_dash(report.library.rx), ratio_or_dash(report.kernel.rx));
  return text;
}

}  // namespace weft::perf
