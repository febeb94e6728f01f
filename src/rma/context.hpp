// An independent stream of operations: one counter per peer. fence and quiet of one context do not
// wait for the operations of another. A context of a team takes the team's PE numbers.
//
// Threads: any number may use one context; quiet then waits for the operations of all of them.
#pragma once

#include <cstdint>
#include <vector>

#include "src/base/atomic.hpp"
#include "src/base/ids.hpp"
#include "src/transport/operation.hpp"

namespace weft::rma {

// The PEs of a context: number i is start + i * stride of the job.
struct PeNumbering {
  std::int32_t start = 0;
  std::int32_t stride = 1;
  std::uint32_t size = 0;
};

// No job has so many PEs.
inline constexpr std::uint32_t kNoPe = UINT32_MAX;

class Context {
 public:
  // `pe_count` is the job's.
  Context(std::uint32_t pe_count, const PeNumbering& numbering)
      : counters_(pe_count), numbering_(numbering) {}

  explicit Context(std::uint32_t pe_count)
      : Context(pe_count, {.start = 0, .stride = 1, .size = pe_count}) {}

  // The job's number of the context's PE `pe`; kNoPe if the context has none such.
  [[nodiscard]] std::uint32_t world_pe(std::uint32_t pe) const {
    return pe < numbering_.size
               ? static_cast<std::uint32_t>(numbering_.start +
                                            static_cast<std::int32_t>(pe) * numbering_.stride)
               : kNoPe;
  }

  [[nodiscard]] const PeNumbering& numbering() const { return numbering_; }

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
  PeNumbering numbering_;
  mutable std::uint32_t used_transport_ = 0;
};

}  // namespace weft::rma
