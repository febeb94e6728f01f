// Virtual time: when a cell of an operation leaves a NIC and when it has arrived at another one.
// Each direction of a NIC is a clock that says when it is free again. A cell reserves time on both,
// so senders that meet on a NIC share it. Reservations are back-dated to when the clock was free:
// looking late costs no rate.
//
// Threads: any number, of any process; clocks are the only state.
#pragma once

#include <atomic>
#include <cstdint>

namespace loom {

// The time at which a direction of a NIC is free again, on CLOCK_MONOTONIC.
using Clock = std::atomic<std::uint64_t>;

static_assert(Clock::is_always_lock_free, "processes share clocks");

// Takes `ns` of a clock, from `earliest` or from when it is free. Returns the end of what was
// taken.
inline std::uint64_t reserve(Clock& clock, std::uint64_t earliest, std::uint64_t ns) {
  std::uint64_t free_at = clock.load(std::memory_order_relaxed);
  std::uint64_t end = 0;
  do {  // relaxed: the clock orders nothing but itself
    end = (free_at > earliest ? free_at : earliest) + ns;
  } while (!clock.compare_exchange_weak(free_at, end, std::memory_order_relaxed));
  return end;
}

// How long a NIC needs for that many bytes of payload.
struct Pace {
  std::uint64_t rate_bits_per_s = 0;
  std::uint64_t mtu_bytes = 0;
  std::uint64_t packet_overhead_bytes = 0;
  std::uint64_t permille = 1000;  // of the rate that is there: a slow NIC has less

  [[nodiscard]] std::uint64_t packets(std::uint64_t bytes) const {
    return bytes == 0 ? 1 : (bytes + mtu_bytes - 1) / mtu_bytes;
  }

  [[nodiscard]] std::uint64_t ns(std::uint64_t bytes) const {
    const std::uint64_t all = bytes + packets(bytes) * packet_overhead_bytes;
    const auto rate = static_cast<double>(rate_bits_per_s) * static_cast<double>(permille) / 1e3;
    return static_cast<std::uint64_t>(static_cast<double>(all) * 8e9 / rate);
  }
};

// One cell from one NIC to another.
struct Cell {
  std::uint64_t earliest = 0;  // when its operation was posted
  std::uint64_t transmit_ns = 0;
  std::uint64_t receive_ns = 0;
  std::uint64_t latency_ns = 0;
};

// Reserves both sides. Returns when the cell's last byte has arrived: at the earliest the latency
// after its first byte left, and the receiving NIC takes it while it is still being sent.
inline std::uint64_t send(Clock& transmit, Clock& receive, const Cell& cell) {
  const std::uint64_t left = reserve(transmit, cell.earliest, cell.transmit_ns);
  return reserve(receive, left - cell.transmit_ns + cell.latency_ns, cell.receive_ns);
}

}  // namespace loom
