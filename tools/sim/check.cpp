// What a setup must be, and whether it fits into this machine's memory.
#include <algorithm>
#include <fstream>
#include <string>

#include "src/base/ids.hpp"
#include "tools/sim/refuse.hpp"
#include "tools/sim/sender.hpp"
#include "tools/sim/simulation.hpp"

namespace weft::sim {
namespace {

// MemAvailable of proc(5); 0 if it cannot be read.
double available_bytes() {
  std::ifstream file("/proc/meminfo");
  std::string word;
  while (file >> word) {
    if (word == "MemAvailable:") {
      double kib = 0;
      file >> kib;
      return kib * 1024;
    }
  }
  return 0;
}

double needed_bytes(const Setup& setup) {
  constexpr double kMessageBytes = 400;  // with its pieces and events
  const double pes = setup.pe_count();
  double peers = std::min<double>(pes - setup.pes_per_node, setup.traffic.peers_max);
  if (setup.traffic.pattern == Pattern::Pairs || setup.traffic.pattern == Pattern::Incast) {
    peers = 1;
  }
  const bool is_weft = setup.library == Library::Weft;
  return pes * peers * ((is_weft ? kPeerStateBytes : 0) + kMessageBytes) +
         pes * pes * (is_weft ? sizeof(void*) : 0);
}

void check_memory(const Setup& setup) {
  constexpr double kUsable = 0.9;
  constexpr double kGigabyte = 1e9;
  const double needed = needed_bytes(setup);
  const double available = available_bytes();
  if (available > 0 && needed > kUsable * available) {
    refuse(
        "{} PEs with all their peers take about {:.0f} GB of memory, and {:.0f} are available: "
        "--sample 32,96 simulates only the next 32 and 96 peers of each PE, and extrapolates",
        setup.pe_count(), needed / kGigabyte, available / kGigabyte);
  }
}

template <typename Fault>
void check_faults(const Setup& setup, const std::vector<Fault>& faults, const char* option) {
  for (const Fault& fault : faults) {
    if (fault.pe.value_or(0) >= setup.pe_count()) {
      refuse("{} names a PE that does not exist: there are {} nodes with {} PEs each", option,
             setup.nodes, setup.pes_per_node);
    }
    if (fault.nic >= *std::ranges::max_element(setup.nics)) {
      refuse("{} names NIC {}, and PEs have {}: the first is nic0", option, fault.nic,
             *std::ranges::max_element(setup.nics));
    }
  }
}

void check_moe(const Setup& setup) {
  const MoeRoutes& moe = setup.traffic.moe;
  if (moe.top_k == 0 || moe.top_k > moe.experts) {
    refuse("a token cannot go to {} of {} experts; choose a --top-k from 1 to {}", moe.top_k,
           moe.experts, moe.experts);
  }
  if (moe.experts < setup.pe_count()) {
    refuse("{} experts do not give each of {} PEs one: raise --experts or lower --nodes",
           moe.experts, setup.pe_count());
  }
}

}  // namespace

void check(const Setup& setup) {
  if (!(setup.nic.bytes_per_ns > 0)) {
    refuse("the machine's NICs have no rate: set nic_gb_per_s, GB/s in each direction");
  }
  if (setup.nodes < 2) {
    refuse("NICs carry what goes between nodes: use --nodes 2 or more");
  }
  if (setup.pes_per_node == 0 || setup.windows == 0) {
    refuse("there must be at least one PE a node and one window that counts");
  }
  for (const std::uint32_t nics : setup.nics) {
    if (nics == 0 || nics > kRailCountMax) {
      refuse("a PE cannot have {} NICs: 1 to {} are possible", nics, kRailCountMax);
    }
  }
  const std::uint32_t peers = setup.pe_count() - setup.pes_per_node;
  if (setup.traffic.peers_max != kAllPeers && setup.traffic.peers_max > peers) {
    refuse("a pattern with {} peers does not fit: {} nodes with {} PEs have {} on other nodes",
           setup.traffic.peers_max, setup.nodes, setup.pes_per_node, peers);
  }
  if (setup.traffic.bytes == 0) {
    refuse("messages of 0 bytes take no time: use --sizes of 1 or more");
  }
  for (const SlowNic& slow : setup.slow) {
    if (!(slow.factor > 0)) {
      refuse("a NIC at {} of its rate never ends: use a factor above 0, or --fail", slow.factor);
    }
  }
  if (setup.leaves.oversubscription > 0 && setup.leaves.nodes == 0) {
    refuse("a leaf switch without nodes: use --leaf 1 or more");
  }
  if (setup.traffic.pattern == Pattern::Moe) {
    check_moe(setup);
  }
  check_faults(setup, setup.slow, "--slow");
  check_faults(setup, setup.failed, "--fail");
  check_memory(setup);
}

}  // namespace weft::sim
