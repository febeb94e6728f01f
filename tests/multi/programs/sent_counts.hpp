// What this PE's rails have sent, for programs that count what a call costs.
//
// Threads: any.
#pragma once

#include <weft/weft.h>

#include <cstddef>
#include <cstdint>
#include <numeric>
#include <vector>

namespace weft::programs {

// Signals, over all rails: each write of an exchange is one put_signal.
inline std::uint64_t sent_signals() {
  std::vector<weft_rail_counters> rails(static_cast<std::size_t>(weft_counters(nullptr, 0)));
  weft_counters(rails.data(), rails.size());
  std::uint64_t sum = 0;
  for (const weft_rail_counters& rail : rails) {
    sum += rail.tx_signals;
  }
  return sum;
}

// By PE, the bytes that this one has put there.
inline std::vector<std::uint64_t> put_bytes() {
  std::vector<std::uint64_t> bytes(static_cast<std::size_t>(weft_pe_count()));
  for (int pe = 0; pe < weft_pe_count(); ++pe) {
    std::vector<weft_peer_rail_counters> rails(
        static_cast<std::size_t>(weft_peer_counters(pe, nullptr, 0)));
    weft_peer_counters(pe, rails.data(), rails.size());
    for (const weft_peer_rail_counters& rail : rails) {
      bytes[static_cast<std::size_t>(pe)] += rail.put_bytes;
    }
  }
  return bytes;
}

// To all PEs.
inline std::uint64_t all_put_bytes() {
  const std::vector<std::uint64_t> bytes = put_bytes();
  return std::accumulate(bytes.begin(), bytes.end(), std::uint64_t{0});
}

}  // namespace weft::programs
