// What a NIC, a rail or a device has sent and received: cumulative, or between two looks. Pure.
#pragma once

#include <array>
#include <cstddef>
#include <cstdint>
#include <vector>

namespace weft::perf {

struct NicBytes {
  std::uint64_t tx_bytes = 0;
  std::uint64_t rx_bytes = 0;

  void add(const NicBytes& other) {
    tx_bytes += other.tx_bytes;
    rx_bytes += other.rx_bytes;
  }

  // What one end sends the other receives.
  [[nodiscard]] NicBytes at_other_end() const {
    return {.tx_bytes = rx_bytes, .rx_bytes = tx_bytes};
  }
};

using Direction = std::uint64_t NicBytes::*;
inline constexpr std::array kBothDirections{&NicBytes::tx_bytes, &NicBytes::rx_bytes};

// Between two looks at cumulative counters of the same NICs. One that went back moved nothing.
[[nodiscard]] inline std::vector<NicBytes> moved(const std::vector<NicBytes>& before,
                                                 const std::vector<NicBytes>& after) {
  std::vector<NicBytes> bytes(after.size());
  for (std::size_t nic = 0; nic < after.size(); ++nic) {
    for (const Direction way : kBothDirections) {
      bytes[nic].*way = after[nic].*way > before[nic].*way ? after[nic].*way - before[nic].*way : 0;
    }
  }
  return bytes;
}

struct RailPlace {
  std::uint32_t pe = 0;
  std::uint32_t rail = 0;
};

// What a PE moved over a rail of its own: tx put, rx got. Of a peer's rail: tx put to it, rx got
// from it.
struct RailChange {
  RailPlace rail;
  NicBytes bytes;
};

}  // namespace weft::perf
