// The memory that all processes of a fabric share: NICs with their clocks, states and counters,
// registered memory, endpoints with what has arrived for them, and processes with their doorbells.
// One sparse file per fabric. Only this layout is shared; pointers never are.
//
// Threads: any, of any process, through atomics; each says what it orders.
#pragma once

#include <array>
#include <atomic>
#include <cstddef>
#include <cstdint>
#include <span>
#include <string>
#include <string_view>

#include "loom/src/arrivals.hpp"
#include "loom/src/gpu_offer.hpp"
#include "loom/src/settings.hpp"
#include "loom/src/wire.hpp"

namespace loom {

inline constexpr std::size_t kNicsMax = 512;
inline constexpr std::size_t kKeysMax = std::size_t{1} << 16U;
inline constexpr std::size_t kEndpointsMax = 2048;
inline constexpr std::size_t kProcessesMax = 512;

using Count = std::atomic<std::uint64_t>;

// What EFA's driver counts for each port, by the same names (kNicCounters).
struct NicCounters {
  Count tx_bytes, tx_pkts, rx_bytes, rx_pkts, rx_drops;
  Count send_bytes, send_wrs, recv_bytes, recv_wrs;
  Count rdma_read_bytes, rdma_read_wrs, rdma_read_wr_err, rdma_read_resp_bytes;
  Count rdma_write_bytes, rdma_write_wrs, rdma_write_wr_err, rdma_write_recv_bytes;
};

struct NicCounter {
  std::string_view name;
  Count NicCounters::* field;
};

[[nodiscard]] std::span<const NicCounter> nic_counters();

enum class NicState : std::uint32_t { Up, Cut };

// A value that the command line sets or that only estimates: it orders nothing.
template <typename T>
T look(const std::atomic<T>& value) {
  return value.load(std::memory_order_relaxed);  // relaxed: as said
}

inline void count_up(Count& counter, std::uint64_t value) {
  counter.fetch_add(value, std::memory_order_relaxed);  // relaxed: a count
}

struct Nic {
  alignas(64) Clock transmit_free;
  alignas(64) Clock receive_free;
  // Set by the command line; relaxed everywhere: they order nothing.
  alignas(64) std::atomic<NicState> state;
  std::atomic<std::uint32_t> rate_permille;      // of the fabric's rate
  std::atomic<std::uint32_t> error_per_million;  // operations that fail
  Count delay_ns;                                // on top of the latency
  Count recent_senders;  // who sent here lately: a bit for each NIC, modulo 64
  Count recent_since_ns;
  Count cpu_copies;  // writes whose source in a GPU's memory the CPU has copied
  alignas(64) NicCounters counters;
};

// Registered memory. Its key is index and generation, so a closed key is never another memory's.
struct KeySlot {
  std::atomic<std::uint32_t> pid;         // who has the slot; 0: nobody
  std::atomic<std::uint32_t> generation;  // odd: open
  std::uint32_t nic;
  std::uint64_t base;
  std::uint64_t bytes;
  std::uint64_t access;
  GpuOffer gpu;  // where it is memory of a GPU
};

struct EndpointSlot {
  std::atomic<std::uint32_t> pid;         // who has the slot; 0: nobody
  std::atomic<std::uint32_t> generation;  // odd: open
  std::uint32_t nic;
  std::uint32_t process;
  std::uint32_t kind;                   // of the persona: by index
  std::uint32_t data_takes_receives;    // 1: immediate data with a write takes one of the buffers
  std::atomic<std::uint32_t> receives;  // buffers posted and not yet promised to a sender
  Arrivals arrivals;
};

// What an endpoint has not read yet of each other one, by slot, where its kind counts that
// (FabricKind:: connection_receives).
using Unread = std::array<Count, kEndpointsMax>;

// Whose address an endpoint's vector holds: by slot, the generation; 0: nobody's. Relaxed
// everywhere: who writes learns from its peer, by a message, that the address is there.
using KnownPeers = std::array<std::atomic<std::uint32_t>, kEndpointsMax>;

inline constexpr std::uint32_t kNoRank = ~std::uint32_t{0};

// ProcessSlot::sleeps.
inline constexpr std::uint32_t kNaps = 1;    // while the client polls: only the client wakes it
inline constexpr std::uint32_t kSleeps = 2;  // whoever rings wakes it

struct ProcessSlot {
  std::atomic<std::uint32_t> pid;  // 0: unused
  std::atomic<std::uint32_t> doorbell;
  std::atomic<std::uint32_t> rank;           // by the runner; kNoRank without one
  std::atomic<std::uint32_t> sleeps;         // whether its engine waits for the doorbell
  std::atomic<std::uint64_t> stalled_until;  // set by the command line
};

struct Segment {
  std::array<char, 16> magic;
  std::uint64_t layout_bytes;
  std::array<char, 32> persona;
  Settings settings;
  std::atomic<std::uint32_t> owner;  // process that removes the file; 0: nobody
  std::array<Nic, kNicsMax> nics;
  std::array<ProcessSlot, kProcessesMax> processes;
  std::array<KeySlot, kKeysMax> keys;
  std::array<EndpointSlot, kEndpointsMax> endpoints;
  std::array<KnownPeers, kEndpointsMax> known_peers;  // of the endpoint in the slot of that index
  std::array<Unread, kEndpointsMax> unread;           // the same
  std::array<std::atomic<std::uint32_t>, 64> word_locks;  // who does an atomic; 0: nobody

  [[nodiscard]] std::size_t nic_count() const {
    return settings.node_count * settings.nics_per_node;
  }
};

// Where fabrics lie: LOOM_DIR, else /run/loom for root and $XDG_RUNTIME_DIR/loom or /tmp/loom-UID
// for others.
[[nodiscard]] std::string default_folder();

// The file of the fabric with this name.
[[nodiscard]] std::string segment_path(const std::string& folder, const std::string& job);

// Maps an existing fabric. Throws Error.
[[nodiscard]] Segment& open_segment(const std::string& path);

// Makes a fabric, or replaces one whose owner and processes have ended. Throws Error, also if it is
// in use.
[[nodiscard]] Segment& create_segment(const std::string& path,
                                      std::string_view persona,
                                      const Settings& settings,
                                      std::uint32_t owner);

// Opens it, or makes it from the environment if there is none. Throws Error.
[[nodiscard]] Segment& open_or_create_segment(const std::string& path, std::string_view persona);

// Unmaps it.
void close_segment(Segment& segment);

// Removes the file of a fabric, its lock, and the files of its nodes. Processes that have it open
// keep it.
void remove_fabric(const std::string& path);

// Whether a process of this fabric is still there.
[[nodiscard]] bool is_used(Segment& segment);

[[nodiscard]] bool is_alive(std::uint32_t pid);

// The key of memory that is open in this slot.
[[nodiscard]] inline std::uint64_t make_key(std::size_t slot, std::uint32_t generation) {
  return slot | std::uint64_t{generation & 0xffffU} << 16U;
}

// Null for a key that no open memory has.
[[nodiscard]] const KeySlot* find_key(const Segment& segment, std::uint64_t key);

}  // namespace loom
