// The seam between what an operation means (rma) and how it gets there. One object serves all peers
// that it reaches; tests run one conformance suite over every implementation.
//
// Threads: every function may be called from any thread; implementations lock as they need.
// Data path: noexcept, no allocation in the steady state, `Status::Again` when a queue is full.
#pragma once

#include <memory>
#include <mutex>
#include <span>
#include <string_view>
#include <utility>
#include <vector>

#include "src/base/ids.hpp"
#include "src/base/status.hpp"
#include "src/transport/operation.hpp"

namespace weft::transport {

class Transport {
 public:
  Transport() = default;
  Transport(const Transport&) = delete;
  Transport& operator=(const Transport&) = delete;
  virtual ~Transport() = default;

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
