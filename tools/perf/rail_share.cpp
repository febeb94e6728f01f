#include "tools/perf/rail_share.hpp"

#include <algorithm>

namespace weft::perf {
namespace {

double greatest_need(const std::vector<PeLoad>& pes,
                     const std::vector<double>& rates,
                     Direction direction) {
  std::vector<double> needs(rates.size(), 0);
  for (const PeLoad& pe : pes) {
    double rate = 0;
    for (const std::size_t nic : pe.nics) {
      rate += rates[nic];
    }
    for (const std::size_t nic : pe.nics) {
      needs[nic] += static_cast<double>(pe.bytes.*direction) / rate;
    }
  }
  return needs.empty() ? 0 : *std::ranges::max_element(needs);
}

}  // namespace

RailShare share_of_rails(const std::vector<PeLoad>& pes,
                         const std::vector<double>& rates,
                         double taken_s) {
  return {.needed_s = std::max(greatest_need(pes, rates, &NicBytes::tx_bytes),
                               greatest_need(pes, rates, &NicBytes::rx_bytes)),
          .taken_s = taken_s};
}

}  // namespace weft::perf
