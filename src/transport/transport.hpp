// The seam between what an operation means (rma) and how it gets there: from the cards by which PEs learn of each other
// to the counters. One object serves all peers that it reaches; tests run one conformance suite over every
// implementation. docs/DEVELOPING.md says how to add one.
//
// Threads: every function may be called from any thread; implementations lock as they need.
// Data path: noexcept, no allocation in the steady state, `Status::Again` when a queue is full.
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

// A NIC of this PE, for counters and for people.
struct RailDescription {
  std::string nic;
  std::string address;
  std::string provider;
  std::uint64_t rate_bits_per_s = 0;
};

// What a transport counts by. Nothing if it has no NICs.
struct RailDescriptions {
  std::vector<RailDescription> own;
  std::uint32_t peer_rail_count_max = 0;
};

class Transport {
 public:
  Transport() = default;
  Transport(const Transport&) = delete;
  Transport& operator=(const Transport&) = delete;
  virtual ~Transport() = default;

  // ---- Setup. Collective, one thread of each PE. A transport is made with the regions that are there already, region 0
  // first; the same list on every PE. Each throws Error.

  // What peers need to know to reach this PE.
  [[nodiscard]] virtual bootstrap::Blob describe() const = 0;
  // What all PEs have said, by PE, and which of them this transport is to reach. Before any operation.
  virtual void connect(const std::vector<bootstrap::Blob>& cards,
                       const std::vector<bool>& reached) = 0;

  // One more region, under a number that is free, the same on all PEs, while operations run. What peers need to know
  // to reach it.
  [[nodiscard]] virtual bootstrap::Blob add_region(RegionIndex index,
                                                   std::span<std::byte> memory) = 0;
  // What all PEs have said of it, by PE. It may be used when all have returned from this.
  virtual void connect_region(RegionIndex index, const std::vector<bootstrap::Blob>& cards) = 0;
  // Nothing of any PE is outstanding on it, and all have come here or are about to: its number is free.
  virtual void remove_region(RegionIndex index) = 0;

  // Opens what the first operation to `peers` would have to open; they must be making progress. Throws Error naming
  // a peer that was not reached within `timeout_s`.
  virtual void warm_up(std::span<const Pe> /*peers*/, std::uint32_t /*timeout_s*/) {}

  // ---- Counters.

  // After connect.
  [[nodiscard]] virtual RailDescriptions rails() const { return {}; }

  // Where it counts: once, after connect and before anything else. The blocks are zero, and outlive this.
  virtual void count_in(const CounterBlocks& /*blocks*/) {}

  // One entry per rail of `peer`; empty if it is not reached by rails.
  [[nodiscard]] virtual std::vector<PeerRailCounters> peer_counters(Pe /*peer*/) const {
    return {};
  }

  // ---- Operations.

  // Takes the operation, or returns Again and has taken nothing. On Ok the operation's counter has been
  // issued, and will be completed exactly once, also if the peer is lost meanwhile.
  virtual Status post(const Operation& operation) noexcept = 0;

  // Asks that everything posted to `peer` become visible and be counted without further calls of
  // post. Returns at once; needed before waiting on a counter. Cheap when nothing is outstanding.
  virtual void flush(Pe peer) noexcept = 0;

  // Moves whatever can be moved. True if something did.
  virtual bool progress() noexcept = 0;

  // Sleeps until progress could do something, at most `timeout_us`. Spurious returns are normal. True
  // if traffic ended the sleep.
  virtual bool wait_for_event(std::uint32_t timeout_us) noexcept = 0;

  // The calling thread makes progress from here on, or sleeps in wait_for_event, until it has called
  // end_wait: nobody else needs to meanwhile.
  virtual void begin_wait() noexcept {}

  virtual void end_wait() noexcept {}

  // ---- For the progress thread, which moves things while no caller does.

  // As progress, not counted as a caller's.
  virtual bool advance() noexcept { return progress(); }

  // True if callers have made progress since the last call: then it need not.
  [[nodiscard]] virtual bool callers_have_polled() noexcept { return false; }

  // Sleeps while callers wait. Returns when the last of them has ended its wait, or on wake.
  virtual void stand_by() noexcept {}

  // Wakes threads that sleep in wait_for_event or stand_by.
  virtual void wake() noexcept {}

  // `peer` has sent what makes no sense, as `fault` says: it is lost from now on, and named in one warning.
  virtual void blame(Pe /*peer*/, std::string_view /*fault*/) noexcept {}

  // Ok, or PeerLost (sticky).
  [[nodiscard]] virtual Status peer_status(Pe peer) const noexcept = 0;

  // Frees `memory` only after this transport: for counters that it has yet to complete when their owner goes.
  void keep(std::shared_ptr<void> memory) {
    const std::scoped_lock lock(kept_mutex_);
    kept_.push_back(std::move(memory));
  }

 private:
  std::mutex kept_mutex_;
  std::vector<std::shared_ptr<void>> kept_;
};

}  // namespace weft::transport
