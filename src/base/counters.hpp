// What each rail has done, in a page that other processes may read (weft-top): a header with a
// version, then one cache-line-aligned block per rail. Written by the transport with relaxed stores;
// a reader sees each number whole, not all of one instant.
#pragma once

#include <array>
#include <cstdint>

#include "src/base/ids.hpp"

namespace weft {

struct alignas(kCacheLineBytes) RailCounters {
  std::array<char, 32> nic{};
  std::array<char, 64> address{};
  std::uint64_t tx_bytes = 0;
  std::uint64_t rx_bytes = 0;
  std::uint64_t tx_operations = 0;
  std::uint64_t rx_operations = 0;
  std::uint64_t tx_signals = 0;
  std::uint64_t rx_signals = 0;
  std::uint64_t outstanding_bytes = 0;
  std::uint64_t retries = 0;
  std::uint64_t errors = 0;
  std::uint32_t up = 1;
  std::uint32_t warm = 0;
};

// What this PE has exchanged with one rail of one peer; a put leaves no trace at its target.
struct PeerRailCounters {
  std::uint64_t put_bytes = 0;
  std::uint64_t get_bytes = 0;
};

struct alignas(kCacheLineBytes) CountersPage {
  static constexpr std::uint32_t kMagic = 0x54464557;  // "WEFT"
  static constexpr std::uint32_t kVersion = 1;

  std::uint32_t magic = kMagic;
  std::uint32_t version = kVersion;
  std::uint32_t pe = 0;
  std::uint32_t pe_count = 0;
  std::uint32_t rail_count = 0;
  std::int32_t pid = 0;
  std::array<char, 64> job{};
  std::array<char, 16> policy{};
  std::array<RailCounters, kRailCountMax> rails{};
};

}  // namespace weft
