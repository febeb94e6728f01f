// An independent stream of operations, with one counter per peer. fence and quiet of one context do
// not wait for the operations of another. A context of a team uses the team's PE numbers.
//
// Threads: any number may use one context; quiet then waits for the operations of all of them.
#pragma once

#include <cstdint>
#include <numeric>
#include <utility>
#include <vector>

#include "src/base/atomic.hpp"
#include "src/base/ids.hpp"
#include "src/transport/operation.hpp"

namespace weft::rma {

// An invalid PE number; no job has that many PEs.
inline constexpr std::uint32_t kNoPe = UINT32_MAX;

class Context {
 public:
  // `pe_count` is the job's; `world_pes` maps each PE of the context to its number in the job. The
  // numbers need not be evenly spaced: PEs may have been assigned to nodes round-robin.
  Context(std::uint32_t pe_count, std::vector<std::uint32_t> world_pes)
      : counters_(pe_count), world_pes_(std::move(world_pes)) {}

  explicit Context(std::uint32_t pe_count) : Context(pe_count, first_pes(pe_count)) {}

  // The job's number of PE `pe` of the context; kNoPe if the context has no such PE.
  [[nodiscard]] std::uint32_t world_pe(std::uint32_t pe) const {
    return pe < world_pes_.size() ? world_pes_[pe] : kNoPe;
  }

  // The number of PEs in the context.
  [[nodiscard]] std::uint32_t size() const { return static_cast<std::uint32_t>(world_pes_.size()); }

  [[nodiscard]] transport::OperationCounter& counter(Pe peer) { return counters_[peer.value]; }

  [[nodiscard]] std::uint32_t pe_count() const {
    return static_cast<std::uint32_t>(counters_.size());
  }

  // Set by the first operation that uses a transport; before that, quiet has nothing to wait for.
  void mark_transport_used() {
    // relaxed: quiet of a thread needs to see only operations that this thread knows of.
    AtomicRef(used_transport_).store(1, std::memory_order_relaxed);
  }

  [[nodiscard]] bool used_transport() const {
    // relaxed: as above.
    return AtomicRef(used_transport_).load(std::memory_order_relaxed) != 0;
  }

 private:
  static std::vector<std::uint32_t> first_pes(std::uint32_t count) {
    std::vector<std::uint32_t> pes(count);
    std::iota(pes.begin(), pes.end(), 0U);
    return pes;
  }

  std::vector<transport::OperationCounter> counters_;
  std::vector<std::uint32_t> world_pes_;
  mutable std::uint32_t used_transport_ = 0;
};

}  // namespace weft::rma
