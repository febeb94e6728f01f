// An independent stream of operations: one counter per peer. fence and quiet of one context do not
// wait for the operations of another.
//
// Threads: any number may use one context; quiet then waits for the operations of all of them.
#pragma once

#include <cstdint>
#include <vector>

#include "src/base/atomic.hpp"
#include "src/base/ids.hpp"
#include "src/transport/operation.hpp"

namespace weft::rma {

class Context {
 public:
  explicit Context(std::uint32_t pe_count) : counters_(pe_count) {}

  [[nodiscard]] transport::OperationCounter& counter(Pe peer) { return counters_[peer.value]; }

  [[nodiscard]] std::uint32_t pe_count() const {
    return static_cast<std::uint32_t>(counters_.size());
  }

  // Set by the first operation that goes through a transport: until then quiet has nothing to ask.
  void mark_transport_used() {
    // relaxed: a thread's quiet need only see the operations that the thread itself knows of.
    AtomicRef(used_transport_).store(1, std::memory_order_relaxed);
  }

  [[nodiscard]] bool used_transport() const {
    // relaxed: as above.
    return AtomicRef(used_transport_).load(std::memory_order_relaxed) != 0;
  }

 private:
  std::vector<transport::OperationCounter> counters_;
  mutable std::uint32_t used_transport_ = 0;
};

}  // namespace weft::rma
