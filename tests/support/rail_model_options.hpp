// What a run of the model of rails consists of (rail_model.hpp): PEs, NICs, traffic and network,
// and what comes out.
//
// Plain values.
#pragma once

#include <cstdint>
#include <vector>

#include "src/transport/rails/policies.hpp"

namespace weft::transport::rails {

enum class Discipline : std::uint8_t { InOrder, Fair };

enum class Traffic : std::uint8_t { AllToAll, Pairs, Incast, Random };

// For ModelOptions::slow_nic_of_pe.
inline constexpr std::uint32_t kAllPes = UINT32_MAX - 1;

struct ModelOptions {
  const Policy* policy = find_policy("balanced");
  std::uint32_t hosts = 2;
  std::uint32_t pes_per_host = 4;
  std::vector<std::uint32_t> nics = {4};  // of PE i: nics[i % size]
  Traffic traffic = Traffic::AllToAll;
  std::uint64_t bytes = 64U << 10U;  // of a message
  bool alternates_signal = false;    // 8 bytes after each message
  bool pareto = false;               // sizes from bytes / 64 to bytes, most of them small
  std::uint32_t count_per_step = 1;  // messages to one peer in a step
  std::uint32_t steps = 1;           // between two quiets
  std::uint32_t windows = 12;        // quiets that count; half as many go before
  Discipline discipline = Discipline::Fair;
  std::uint32_t slow_nic_of_pe =
      UINT32_MAX;              // NIC 0 of this PE is slow; kAllPes: of every PE, a slow plane
  std::uint32_t slowness = 2;  // 2: at half its rate
  // Each half of the hosts has leaf switches. The links of a leaf to the other leaves carry what
  // its NICs carry, divided by this. 0: everything.
  std::uint32_t oversubscription = 0;
  bool has_rail_leaves =
      false;  // a leaf for each NIC of a host (rail-optimized); else one for all NICs
  bool shuffled_peers = false;        // each PE sends to its peers in an order of its own
  std::uint32_t skew_ticks = 0;       // PEs begin a window up to so much apart
  std::uint64_t tick_ns = 1'000'000;  // in which a NIC carries 4 KiB; 327 is a NIC of 100 Gbit/s
  std::uint64_t seed = 1;
};

struct ModelResult {
  double share = 0;  // of the time that the busiest PE's NICs need if they share its bytes
  std::uint64_t rx_queue_max = 0;  // bytes that waited at one receiving NIC
  double rx_max_over_mean = 0;     // of the whole run, worst PE
};

}  // namespace weft::transport::rails
