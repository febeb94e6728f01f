// The counters of each rail of a PE, in memory that other processes may read: a header, a block per
// rail, a table of peers. docs/COUNTERS.md documents the same layout for readers.
//
// Written with relaxed stores; the rails' numbers under the transport's lock. A reader sees each
// number untorn, but not all from the same moment. A change of the layout requires a new kVersion.
#pragma once

#include <array>
#include <bit>
#include <cstddef>
#include <cstdint>
#include <span>

#include "src/base/atomic.hpp"
#include "src/base/ids.hpp"

namespace weft {

struct alignas(kCacheLineBytes) PageHeader {
  static constexpr std::uint32_t kMagic = 0x54464557;  // "WEFT"
  static constexpr std::uint32_t kVersion = 2;

  std::uint32_t magic = kMagic;
  std::uint32_t version = kVersion;
  std::uint32_t header_bytes = 384;
  std::uint32_t rail_bytes = 256;
  std::uint32_t rail_count = 0;
  std::uint32_t peer_rail_bytes = 16;
  std::uint32_t peer_rail_stride = 0;  // rails per peer in the table of peers
  std::uint32_t pe = 0;
  std::uint32_t pe_count = 0;
  std::int32_t pid = 0;
  std::uint64_t process_start_ticks = 0;  // field 22 of /proc/PID/stat; 0: unknown
  std::uint64_t file_bytes = 0;
  std::uint64_t rails_offset = 384;
  std::uint64_t peers_offset = 0;  // 0: there is no table of peers
  std::uint64_t network_namespace = 0;
  std::uint64_t started_ns = 0;  // CLOCK_REALTIME
  std::uint32_t uid = 0;
  std::uint32_t node = 0;
  std::uint64_t heartbeat = 0;  // reserved
  std::array<char, 64> job{};
  std::array<char, 16> policy{};
  std::array<char, 64> host{};
  std::array<char, 16> version_text{};
  std::array<char, 120> reserved{};
};

struct alignas(kCacheLineBytes) RailCounters {
  std::array<char, 32> nic{};
  std::array<char, 64> address{};
  std::uint64_t tx_bytes = 0;       // puts and messages, counted when they are handed to the NIC
  std::uint64_t rx_bytes = 0;       // gets, counted likewise, and messages that arrived
  std::uint64_t tx_operations = 0;  // puts, gets and messages
  std::uint64_t rx_operations = 0;  // messages
  std::uint64_t tx_signals = 0;
  std::uint64_t rx_signals = 0;
  std::uint64_t outstanding_bytes = 0;
  std::uint64_t retries = 0;          // posts rejected because the NIC's queue was full
  std::uint64_t errors = 0;           // operations and messages that failed; they are resent
  std::uint32_t up = 0;               // 1 while it reaches any rail of any peer
  std::uint32_t warm = 0;             // 1 once all connections that the policy uses have been open
  std::uint64_t rate_bits_per_s = 0;  // 0: unknown
  std::array<char, 32> provider{};
  std::uint64_t rx_message_bytes =
      0;                      // of rx_bytes: the part that the senders' put_bytes also count
  std::uint64_t refused = 0;  // messages whose signature is wrong
  std::array<char, 24> reserved{};
};

// Traffic of this PE with one rail of one peer; a put generates no event at its target.
struct PeerRailCounters {
  std::uint64_t put_bytes = 0;
  std::uint64_t get_bytes = 0;
};

// The memory that a transport counts in: a block per local rail, and pe_count x stride entries for
// the rails of peers.
struct CounterBlocks {
  std::span<RailCounters> rails;
  std::span<PeerRailCounters> peers;
  std::uint32_t peer_rail_stride = 0;
};

// One writer at a time. Relaxed: a statistic; a reader needs it untorn, not ordered with others.
inline void add_to(std::uint64_t& counter, std::uint64_t value) {
  AtomicRef(counter).store(counter + value, std::memory_order_relaxed);  // as above
}

template <typename Integer>
void set_counter(Integer& counter, Integer value) {
  AtomicRef(counter).store(value, std::memory_order_relaxed);  // as above
}

template <typename Integer>
[[nodiscard]] Integer read_counter(const Integer& counter) {
  return AtomicRef(const_cast<Integer&>(counter)).load(std::memory_order_relaxed);  // as above
}

// Reads the counters of one rail, while its writer continues.
[[nodiscard]] inline RailCounters read_counters(const RailCounters& from) {
  return {.nic = from.nic,
          .address = from.address,
          .tx_bytes = read_counter(from.tx_bytes),
          .rx_bytes = read_counter(from.rx_bytes),
          .tx_operations = read_counter(from.tx_operations),
          .rx_operations = read_counter(from.rx_operations),
          .tx_signals = read_counter(from.tx_signals),
          .rx_signals = read_counter(from.rx_signals),
          .outstanding_bytes = read_counter(from.outstanding_bytes),
          .retries = read_counter(from.retries),
          .errors = read_counter(from.errors),
          .up = read_counter(from.up),
          .warm = read_counter(from.warm),
          .rate_bits_per_s = from.rate_bits_per_s,
          .provider = from.provider,
          .rx_message_bytes = read_counter(from.rx_message_bytes),
          .refused = read_counter(from.refused)};
}

// The layout is a contract with programs that are built separately.
static_assert(std::endian::native == std::endian::little);
static_assert(sizeof(PageHeader) == 384 && sizeof(RailCounters) == 256);
static_assert(sizeof(PeerRailCounters) == 16 && offsetof(PeerRailCounters, get_bytes) == 8);
static_assert(offsetof(PageHeader, header_bytes) == 8 && offsetof(PageHeader, rail_count) == 16);
static_assert(offsetof(PageHeader, peer_rail_stride) == 24 && offsetof(PageHeader, pe) == 28);
static_assert(offsetof(PageHeader, pe_count) == 32 && offsetof(PageHeader, pid) == 36);
static_assert(offsetof(PageHeader, process_start_ticks) == 40);
static_assert(offsetof(PageHeader, file_bytes) == 48 && offsetof(PageHeader, rails_offset) == 56);
static_assert(offsetof(PageHeader, peers_offset) == 64);
static_assert(offsetof(PageHeader, network_namespace) == 72);
static_assert(offsetof(PageHeader, started_ns) == 80 && offsetof(PageHeader, uid) == 88);
static_assert(offsetof(PageHeader, node) == 92 && offsetof(PageHeader, heartbeat) == 96);
static_assert(offsetof(PageHeader, job) == 104 && offsetof(PageHeader, policy) == 168);
static_assert(offsetof(PageHeader, host) == 184 && offsetof(PageHeader, version_text) == 248);
static_assert(offsetof(RailCounters, address) == 32 && offsetof(RailCounters, tx_bytes) == 96);
static_assert(offsetof(RailCounters, rx_bytes) == 104);
static_assert(offsetof(RailCounters, tx_operations) == 112);
static_assert(offsetof(RailCounters, rx_operations) == 120);
static_assert(offsetof(RailCounters, tx_signals) == 128 &&
              offsetof(RailCounters, rx_signals) == 136);
static_assert(offsetof(RailCounters, outstanding_bytes) == 144);
static_assert(offsetof(RailCounters, retries) == 152 && offsetof(RailCounters, errors) == 160);
static_assert(offsetof(RailCounters, up) == 168 && offsetof(RailCounters, warm) == 172);
static_assert(offsetof(RailCounters, rate_bits_per_s) == 176);
static_assert(offsetof(RailCounters, provider) == 184);
static_assert(offsetof(RailCounters, rx_message_bytes) == 216);
static_assert(offsetof(RailCounters, refused) == 224);

}  // namespace weft
