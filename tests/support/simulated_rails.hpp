// Runs of the planner over simulated NICs (tools/sim) in which only the NICs take time: without a
// proxy, latencies and costs of messages, and in cells of 4 KiB. What a policy costs in time.
//
// One thread; a run of eight PEs takes milliseconds.
#pragma once

#include <cstdint>
#include <optional>
#include <string>
#include <vector>

#include "src/transport/rails/policies.hpp"
#include "tools/sim/simulation.hpp"

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

inline sim::TrafficShape traffic_of(const ModelOptions& options) {
  sim::TrafficShape traffic;
  switch (options.traffic) {
    case Traffic::AllToAll:
      traffic.pattern = sim::Pattern::AllToAll;
      break;
    case Traffic::Pairs:
      traffic.pattern = sim::Pattern::Pairs;
      break;
    case Traffic::Incast:
      traffic.pattern = sim::Pattern::Incast;
      break;
    case Traffic::Random:
      traffic.pattern = sim::Pattern::Random;
      break;
  }
  traffic.bytes = options.bytes;
  traffic.is_pareto = options.pareto;
  traffic.alternates_signal = options.alternates_signal;
  traffic.count_per_step = options.count_per_step;
  traffic.steps = options.steps;
  traffic.is_shuffled = options.shuffled_peers;
  traffic.start_apart_ns =
      static_cast<double>(options.skew_ticks) * static_cast<double>(options.tick_ns);
  return traffic;
}

inline sim::NicShape nic_of(const ModelOptions& options) {
  constexpr std::uint32_t kCellBytes = 4096;
  sim::NicShape nic;
  nic.bytes_per_ns = kCellBytes / static_cast<double>(options.tick_ns);
  nic.latency_ns = 0;
  nic.is_fair = options.discipline == Discipline::Fair;
  nic.cell_bytes_min = kCellBytes;
  nic.cell_bytes_max = kCellBytes;
  return nic;
}

inline sim::Setup setup_of(const ModelOptions& options) {
  sim::Setup setup;
  setup.policy = std::string(options.policy->name);
  setup.nodes = options.hosts;
  setup.pes_per_node = options.pes_per_host;
  setup.nics = options.nics;
  setup.nic = nic_of(options);
  setup.traffic = traffic_of(options);
  setup.leaves = {.oversubscription = static_cast<double>(options.oversubscription),
                  .nodes = (options.hosts + 1) / 2,
                  .is_rail_optimized = options.has_rail_leaves};
  setup.windows = options.windows;
  setup.warm_up = options.windows / 2;
  setup.seed = options.seed;
  if (options.slow_nic_of_pe == kAllPes) {
    setup.slow.push_back({.pe = std::nullopt, .nic = 0, .factor = 1.0 / options.slowness});
  } else if (options.slow_nic_of_pe < setup.pe_count()) {
    setup.slow.push_back(
        {.pe = options.slow_nic_of_pe, .nic = 0, .factor = 1.0 / options.slowness});
  }
  return setup;
}

[[nodiscard]] inline sim::Outcome simulate(const ModelOptions& options) {
  return sim::Simulation(setup_of(options)).run();
}

}  // namespace weft::transport::rails
