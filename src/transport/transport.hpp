// The interface between the semantics of an operation (rma) and its implementation, from the
// connection data that PEs exchange to the counters. One object serves all peers that it reaches.
// One conformance suite runs over every implementation. docs/DEVELOPING.md explains how to add one.
//
// Threads: every function may be called from any thread; implementations lock as needed.
// Data path: noexcept, no allocation in the steady state, `Status::Again` if a queue is full.
#pragma once

#include <memory>
#include <mutex>
#include <span>
#include <string>
#include <string_view>
#include <utility>
#include <vector>

#include "src/base/counters.hpp"
#include "src/base/ids.hpp"
#include "src/base/status.hpp"
#include "src/bootstrap/bootstrap.hpp"
#include "src/transport/operation.hpp"

namespace weft::transport {

// A NIC of this PE, for counters and for display.
struct RailDescription {
  std::string nic;
  std::string address;
  std::string provider;
  std::uint64_t rate_bits_per_s = 0;
};

// The rails that a transport counts by. Empty if it has no NICs.
struct RailDescriptions {
  std::vector<RailDescription> own;
  std::uint32_t peer_rail_count_max = 0;
};

// What the threads of the program do with a transport, as far as its progress thread must know.
enum class CallerActivity : std::uint8_t {
  None,
  Posts,  // the progress thread makes progress, but leaves them the lock for a while
  // Small ones without a pause, and they make progress from time to time: the thread leaves them
  // alone for longer.
  PostsAndPolls,
  Polls,  // they make progress themselves
};

class Transport {
 public:
  Transport() = default;
  Transport(const Transport&) = delete;
  Transport& operator=(const Transport&) = delete;
  virtual ~Transport() = default;

  // ---- Setup. Collective, by one thread of each PE. A transport is created with the existing
  // regions, region 0 first; the list is the same on every PE. Each function throws Error.

  // The connection data that peers need to reach this PE.
  [[nodiscard]] virtual bootstrap::Blob describe() const = 0;
  // The connection data of all PEs, by PE, and which of them this transport must reach. Call before
  // any operation.
  virtual void connect(const std::vector<bootstrap::Blob>& connection_data,
                       const std::vector<bool>& reached) = 0;

  // Adds a region while operations run, under a free number that is the same on all PEs. Returns
  // the data that peers need to access it.
  [[nodiscard]] virtual bootstrap::Blob add_region(RegionIndex index,
                                                   std::span<std::byte> memory) = 0;
  // The region's data of all PEs, by PE. The region may be used after all PEs have returned from
  // this call.
  virtual void connect_region(RegionIndex index,
                              const std::vector<bootstrap::Blob>& region_data) = 0;
  // Call when no PE has an operation outstanding on the region, and all PEs make this call. Frees
  // its number.
  virtual void remove_region(RegionIndex index) = 0;

  // Opens the connections that the first operation to `peers` would open; the peers must be making
  // progress. Throws Error naming a peer that was not reached within `timeout_s`.
  virtual void warm_up(std::span<const Pe> /*peers*/, std::uint32_t /*timeout_s*/) {}

  // ---- Counters.

  // Call after connect.
  [[nodiscard]] virtual RailDescriptions rails() const { return {}; }

  // Sets the memory to count in: once, after connect and before anything else. The blocks are zero,
  // and outlive this.
  virtual void count_in(const CounterBlocks& /*blocks*/) {}

  // One entry per rail of `peer`; empty if the transport uses no rails.
  [[nodiscard]] virtual std::vector<PeerRailCounters> peer_counters(Pe /*peer*/) const {
    return {};
  }

  // ---- Operations.

  // Accepts the operation, or returns Again and has done nothing. On Ok the operation's counter has
  // been issued. It will be completed exactly once, even if the peer is lost meanwhile.
  virtual Status post(const Operation& operation) noexcept = 0;

  // Whether it takes operations that have segments.
  [[nodiscard]] virtual bool gathers() const noexcept { return false; }

  // Makes everything posted to `peer` become visible and complete without further calls of post.
  // Returns at once; call it before waiting on a counter. Cheap if nothing is outstanding.
  virtual void flush(Pe peer) noexcept = 0;

  // Makes progress on all outstanding work. True if anything progressed.
  virtual bool progress() noexcept = 0;

  // Sleeps until progress could do something, at most `timeout_us`. Spurious returns are allowed.
  // True if traffic ended the sleep.
  virtual bool wait_for_event(std::uint32_t timeout_us) noexcept = 0;

  // Until it calls end_wait, the calling thread makes progress or sleeps in wait_for_event: no
  // other thread needs to make progress meanwhile.
  virtual void begin_wait() noexcept {}

  virtual void end_wait() noexcept {}

  // ---- For the progress thread, which makes progress while no caller does.

  // As progress, but not counted as a caller's.
  virtual bool advance() noexcept { return progress(); }

  // What callers have done since the last call.
  [[nodiscard]] virtual CallerActivity caller_activity() noexcept { return CallerActivity::None; }

  // Sleeps while callers wait. Returns when the last of them has ended its wait, or on wake.
  virtual void stand_by() noexcept {}

  // Wakes threads that sleep in wait_for_event or stand_by.
  virtual void wake() noexcept {}

  // `peer` has violated the protocol, as `fault` describes: it is lost from now on, and named in
  // one warning.
  virtual void blame(Pe /*peer*/, std::string_view /*fault*/) noexcept {}

  // The process of `peer` has ended, as the launcher tells: it is lost from now on.
  virtual void lose(Pe /*peer*/) noexcept {}

  // A number that grows while data moves between this PE and `peer`, so that a long transfer is not
  // taken for a wait that gets nowhere. 0 where transfers never last.
  [[nodiscard]] virtual std::uint64_t moved(Pe /*peer*/) const noexcept { return 0; }

  // Ok, or PeerLost (sticky).
  [[nodiscard]] virtual Status peer_status(Pe peer) const noexcept = 0;

  // Keeps `memory` alive as long as this transport: for counters that it completes after their
  // owner is gone.
  void keep(std::shared_ptr<void> memory) {
    const std::scoped_lock lock(kept_mutex_);
    kept_.push_back(std::move(memory));
  }

 private:
  std::mutex kept_mutex_;
  std::vector<std::shared_ptr<void>> kept_;
};

}  // namespace weft::transport
