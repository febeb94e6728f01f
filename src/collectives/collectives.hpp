// Collectives over all PEs, written on rma alone: dissemination for barriers, direct puts with a
// signal for the all-to-all, a binomial tree for broadcast.
//
// A collective that moves data starts with sync_all: so every PE is in the call before the first
// byte is written, and a fast PE's next call cannot touch what a slow PE still reads.
//
// Threads: one thread of each PE, the same calls in the same order on all PEs.
#pragma once

#include <cstddef>
#include <cstdint>
#include <span>
#include <string_view>
#include <vector>

#include "src/base/ids.hpp"
#include "src/base/status.hpp"
#include "src/collectives/control.hpp"
#include "src/rma/rma.hpp"

namespace weft::collectives {

class Collectives {
 public:
  // The heap has kControlBytes of control bytes.
  Collectives(rma::Rma& rma, Pe me);

  // All PEs have entered. Says nothing about outstanding operations. PeerLost if any PE is lost.
  Status sync_all() { return sync("sync_all"); }

  // The last sync of all, after which no signal of this PE is on the way any more.
  Status leave();

  // quiet on `context`, then sync_all.
  Status barrier_all(rma::Context& context);
  // As sync_all; `name` is what a long wait says it is in.
  Status sync(std::string_view name);

  Status alltoall(void* dest, const void* source, std::size_t bytes_per_pe);
  Status broadcast(void* dest, const void* source, std::size_t bytes, Pe root);

  // Collective. Shows `mine` to all PEs; `all` gets everybody's, by PE.
  Status exchange(const CollectiveRequest& mine, std::span<CollectiveRequest> all);

 private:
  // Waits until `word` has reached `count`; a lost PE anywhere ends it, since its arrival may be
  // what others wait for before they come here.
  Status wait_for(ControlWord& word, std::uint64_t count, std::string_view name, Pe from);
  Status forward(void* dest, const void* source, std::size_t bytes, Pe root);

  rma::Rma& rma_;
  ControlPage& control_;
  rma::Context context_;
  Pe me_;
  std::uint32_t pe_count_;
  std::vector<Pe> others_;
  std::uint64_t sync_count_ = 0;
  std::uint64_t alltoall_blocks_ = 0;
  std::uint64_t broadcast_count_ = 0;
};

}  // namespace weft::collectives
