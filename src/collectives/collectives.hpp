// Collectives over all PEs, written on rma alone: dissemination for barriers, direct puts with a
// signal for the data. Node-aware algorithms come with the OpenSHMEM teams.
//
// Threads: one thread of each PE, the same calls in the same order on all PEs.
#pragma once

#include <cstddef>
#include <cstdint>

#include "src/base/ids.hpp"
#include "src/base/status.hpp"
#include "src/rma/rma.hpp"

namespace weft::collectives {

// Bytes of the heap's control page that Collectives uses.
[[nodiscard]] std::uint64_t control_bytes(std::uint32_t pe_count);

class Collectives {
 public:
  Collectives(rma::Rma& rma, Pe me, std::uint32_t pe_count);

  // All PEs have entered. Says nothing about outstanding operations.
  Status sync_all();
  // quiet on `context`, then sync_all.
  Status barrier_all(rma::Context& context);
  Status alltoall(void* dest, const void* source, std::size_t bytes_per_pe);
  Status broadcast(void* dest, const void* source, std::size_t bytes, Pe root);

 private:
  Status sync_round(std::uint32_t round, std::uint32_t distance);

  rma::Rma& rma_;
  rma::Context context_;
  Pe me_;
  std::uint32_t pe_count_;
  std::uint64_t epoch_ = 0;
};

}  // namespace weft::collectives
