// What a row's size means to each collective on GPUs, and its data: the same for kernels and
// streams.
//
// Threads: the main one of each PE.
#pragma once

#include <cstddef>
#include <cstdint>
#include <string>

#include "tools/perf/gpu/session.hpp"

namespace weft::perf::gpu {

enum class Pattern : std::uint8_t { Exchange, Gather, One, Reduce, ReduceScatter };

// A collective, its data and its rows.
struct CollectivePlan {
  std::string title;
  std::string type = "32-bit";
  weft_type element = WEFT_UINT32;
  std::size_t element_bytes = 4;
  Pattern pattern = Pattern::Exchange;
  weft_reduction reduction = WEFT_SUM;
  bool source_has_blocks = false;  // one for each PE
  bool dest_has_blocks = false;
  double bus_factor = 1;
  bool moves_nothing = false;  // sync, barrier

  // Elements of one block in a row of that size; 0 if it is too small for a row.
  [[nodiscard]] std::size_t count_for(std::size_t size, int pe_count) const {
    const bool has_blocks = source_has_blocks || dest_has_blocks;
    return size / element_bytes / (has_blocks ? static_cast<std::size_t>(pe_count) : 1);
  }

  [[nodiscard]] std::size_t row_bytes(std::size_t count, int pe_count) const {
    const bool has_blocks = source_has_blocks || dest_has_blocks;
    return moves_nothing
               ? 0
               : count * element_bytes * (has_blocks ? static_cast<std::size_t>(pe_count) : 1);
  }
};

// Of the benchmark that the options name, with that reduction; the title is "NAME" + suffix.
[[nodiscard]] CollectivePlan plan_of(const Session& session,
                                     weft_reduction reduction,
                                     const std::string& suffix);
// The reductions that -o and -d ask for; one for everything that is not a reduction.
[[nodiscard]] std::vector<weft_reduction> reductions_of(const Options& options);

// Fills the source and poisons dest; then all PEs are ready. Collective.
void prepare(const Session& session, const CollectivePlan& plan, std::size_t count);
// Wrong elements in dest.
[[nodiscard]] std::uint64_t count_wrong(const Session& session,
                                        const CollectivePlan& plan,
                                        std::size_t count);

}  // namespace weft::perf::gpu
