// What a simulated run consists of (PEs, NICs, traffic, faults, network) and what comes out of it.
// Times are in ns, rates in bytes/ns, which is GB/s.
//
// Plain values.
#pragma once

#include <cstdint>
#include <limits>
#include <optional>
#include <string>
#include <vector>

namespace weft::sim {

// Who decides over which rails an operation goes.
enum class Library : std::uint8_t {
  Weft,     // Weft's own planner, with its windows, bursts, weights and links
  Nvshmem,  // NVSHMEM's proxy: by the count of operations, at once, without windows
};

enum class Pattern : std::uint8_t { AllToAll, Incast, Pairs, Random, Moe };

// Over which messages the routes of a mixture of experts go.
enum class MoeMessages : std::uint8_t { ByToken, ByPeer, ByNode };

struct MoeRoutes {
  std::uint32_t tokens = 128;   // of each PE
  std::uint32_t experts = 256;  // evenly over all PEs
  std::uint32_t top_k = 8;
  double zipf = 1;  // the popularity of the i-th expert is 1 / i^zipf; 0: all alike
  MoeMessages messages = MoeMessages::ByToken;
};

inline constexpr std::uint32_t kAllPeers = std::numeric_limits<std::uint32_t>::max();

struct TrafficShape {
  Pattern pattern = Pattern::AllToAll;
  std::uint64_t bytes = 64U << 10U;     // of a message; the largest of Pareto's; of a token
  bool is_pareto = false;               // from bytes / 64 to bytes, most of them small
  bool alternates_signal = false;       // 8 bytes after each message
  std::uint32_t count_per_step = 1;     // messages to a peer in a step
  std::uint32_t steps = 1;              // between two quiets
  std::uint32_t peers_max = kAllPeers;  // AllToAll: only the next so many peers
  bool is_shuffled = false;             // each PE has an order of peers of its own
  double start_apart_ns = 0;            // PEs begin a window up to so much apart
  MoeRoutes moe;
};

struct NicShape {
  double bytes_per_ns = 12.5;  // in each direction
  double latency_ns = 8000;    // from the last byte received to the completion at the sender
  double message_ns = 0;       // of each piece at the sending NIC
  double proxy_ns = 0;         // of each operation, one after the other in a PE
  // While more than overload_bytes wait at a receiving NIC, it takes this part of its rate.
  double overload_rate = 1;
  double overload_bytes = std::numeric_limits<double>::infinity();
  bool is_fair = true;  // sends a cell of each connection in turn; else one piece after the other
  std::uint32_t cells_max = 8;  // of a piece, as far as the sizes of cells allow
  std::uint32_t cell_bytes_min = 8U << 10U;
  std::uint32_t cell_bytes_max = 256U << 10U;
  double fault_timeout_ns = 500e6;  // until an operation on a dead NIC fails
};

struct SlowNic {
  std::optional<std::uint32_t> pe;  // none: of all PEs
  std::uint32_t nic = 0;
  double factor = 1;  // the part of its rate that it keeps
};

struct FailedNic {
  std::optional<std::uint32_t> pe;
  std::uint32_t nic = 0;
  double at_ns = 0;  // after the begin of the first window that counts
};

// Leaf switches of so many nodes each. The links of a leaf to the other leaves carry what its NICs
// carry, divided by `oversubscription`; 0: everything.
struct Leaves {
  double oversubscription = 0;
  std::uint32_t nodes = 32;
  bool is_rail_optimized = true;  // a leaf for each NIC of a node; else one for all of them
};

struct Setup {
  Library library = Library::Weft;
  std::string policy = "balanced";
  std::uint32_t nodes = 2;
  std::uint32_t pes_per_node = 4;
  std::vector<std::uint32_t> nics = {4};  // of PE i: nics[i % size]
  NicShape nic;
  TrafficShape traffic;
  std::vector<SlowNic> slow;
  std::vector<FailedNic> failed;
  Leaves leaves;
  std::uint32_t windows = 2;  // quiets that count
  std::uint32_t warm_up = 1;  // quiets before them
  std::uint64_t seed = 1;

  [[nodiscard]] std::uint32_t pe_count() const { return nodes * pes_per_node; }

  [[nodiscard]] std::uint32_t node_of(std::uint32_t pe) const { return pe / pes_per_node; }

  [[nodiscard]] bool is_near(std::uint32_t a, std::uint32_t b) const {
    return node_of(a) == node_of(b);
  }

  [[nodiscard]] std::uint32_t nics_of(std::uint32_t pe) const { return nics[pe % nics.size()]; }
};

enum class Part : std::uint8_t { Nothing, Proxy, Tx, Rx, RxInTurn, Uplink, Downlink };

// What is busy for the largest part of the time.
struct Limit {
  Part part = Part::Nothing;
  double busy = 0;    // part of the time
  double others = 0;  // the mean of the other NICs of that PE
  std::uint32_t pe = 0;
  std::uint32_t nic = 0;
};

struct Outcome {
  double window_ns = 0;     // mean
  double window_bytes = 0;  // mean, of all PEs
  double p99_ns = 0;        // of the messages, from post to completion
  double share = 0;         // of the time that the busiest PE's NICs need if they share its bytes
  double tx_max_over_mean = 1;  // of the whole run, worst PE
  double rx_max_over_mean = 1;
  double tx_moment = 1;  // mean over short intervals and PEs
  double rx_moment = 1;
  std::uint64_t rx_queue_max = 0;  // bytes that waited at one receiving NIC
  std::uint64_t messages = 0;
  std::uint64_t events = 0;
  std::uint32_t slow_rails = 0;  // of all PEs, taken for slow by their own PE
  std::uint32_t links_down = 0;  // at the end
  Limit limit;
};

}  // namespace weft::sim
