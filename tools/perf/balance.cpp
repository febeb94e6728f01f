#include "tools/perf/balance.hpp"

#include <algorithm>
#include <map>
#include <numeric>
#include <tuple>
#include <utility>

#include <fmt/format.h>

namespace weft::perf {
namespace {

constexpr std::uint64_t kTakesPartShare = 20;

using NicKey = std::tuple<std::uint32_t, std::string, std::string>;

std::uint64_t sum_tx(const PeReport& pe) {
  return std::accumulate(pe.rails.begin(), pe.rails.end(), std::uint64_t{0},
                         [](auto sum, const RailReport& rail) { return sum + rail.tx_bytes; });
}

std::uint64_t sum_rx(const PeReport& pe) {
  return std::accumulate(pe.rails.begin(), pe.rails.end(), std::uint64_t{0},
                         [](auto sum, const RailReport& rail) { return sum + rail.rx_bytes; });
}

std::uint64_t busiest(const std::vector<PeReport>& pes, std::uint64_t (*sum)(const PeReport&)) {
  std::uint64_t most = 0;
  for (const PeReport& pe : pes) {
    most = std::max(most, sum(pe));
  }
  return most;
}

bool takes_part(std::uint64_t bytes, std::uint64_t most) {
  return bytes > 0 && bytes >= most / kTakesPartShare;
}

std::vector<NicReport> merge_rails(const std::vector<PeReport>& pes) {
  const std::uint64_t most_tx = busiest(pes, sum_tx);
  const std::uint64_t most_rx = busiest(pes, sum_rx);
  std::map<NicKey, std::size_t> places;
  std::vector<NicReport> nics;
  for (std::uint32_t pe = 0; pe < pes.size(); ++pe) {
    for (const RailReport& rail : pes[pe].rails) {
      const auto [place, is_new] =
          places.try_emplace(NicKey{pes[pe].node, rail.nic, rail.address}, nics.size());
      if (is_new) {
        nics.push_back({.node = pes[pe].node, .nic = rail.nic, .address = rail.address});
      }
      NicReport& nic = nics[place->second];
      nic.pes.push_back(pe);
      nic.library.tx_bytes += rail.tx_bytes;
      nic.library.rx_bytes += rail.rx_bytes;
      nic.retries += rail.retries;
      nic.errors += rail.errors;
      nic.sends = nic.sends || takes_part(sum_tx(pes[pe]), most_tx);
      nic.receives = nic.receives || takes_part(sum_rx(pes[pe]), most_rx);
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
    const auto found = std::ranges::find(pe.devices, nic.nic, &DeviceBytes::name);
    if (found != pe.devices.end()) {
      nic.kernel = *found;
    }
  }
}

std::vector<std::vector<std::uint64_t>> bytes_between(const std::vector<PeReport>& pes) {
  std::vector<std::vector<std::uint64_t>> bytes(pes.size(),
                                                std::vector<std::uint64_t>(pes.size(), 0));
  for (std::size_t pe = 0; pe < pes.size(); ++pe) {
    for (const PeerBytes& exchanged : pes[pe].peers) {
      bytes[pe][exchanged.peer] += exchanged.put_bytes;
      bytes[exchanged.peer][pe] += exchanged.got_bytes;
    }
  }
  return bytes;
}

struct Directions {
  std::vector<std::uint64_t> tx;
  std::vector<std::uint64_t> rx;

  void add(const NicReport& nic, const DeviceBytes& bytes) {
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

std::string bytes_or_dash(const std::optional<DeviceBytes>& bytes,
                          std::uint64_t DeviceBytes::* direction) {
  return bytes ? fmt::format("{}", (*bytes).*direction) : std::string("-");
}

std::string ratio_or_dash(const std::optional<double>& ratio) {
  return ratio ? fmt::format("{:.3f}", *ratio) : std::string("-");
}

}  // namespace

std::optional<double> max_over_mean(const std::vector<std::uint64_t>& values) {
  const std::uint64_t sum = std::accumulate(values.begin(), values.end(), std::uint64_t{0});
  if (sum == 0) {
    return std::nullopt;
  }
  const auto most = static_cast<double>(*std::ranges::max_element(values));
  return most * static_cast<double>(values.size()) / static_cast<double>(sum);
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
    kernel.add(nic, nic.kernel.value_or(DeviceBytes{}));
  }
  report.library = library.ratios();
  if (kernel_knows_all) {
    report.kernel = kernel.ratios();
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
                        bytes_or_dash(nic.kernel, &DeviceBytes::tx_bytes), nic.library.rx_bytes,
                        bytes_or_dash(nic.kernel, &DeviceBytes::rx_bytes));
  }
  text += fmt::format("tx max/mean library {} kernel {}   rx max/mean library {} kernel {}\n",
                      ratio_or_dash(report.library.tx), ratio_or_dash(report.kernel.tx),
                      ratio_or_dash(report.library.rx), ratio_or_dash(report.kernel.rx));
  return text;
}

}  // namespace weft::perf
