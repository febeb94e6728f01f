// What a source makes of the partial sums of its tokens: for each token a sum in a fixed order, or
// the rows of its lanes. The order follows from the ids alone: groups by their first ranks, or
// lanes.
//
// Threads: one; lives as long as one receive of a combine.
#pragma once

#include <weft/moe.h>

#include <cstddef>

#include "moe/src/cpu/attendance.hpp"
#include "moe/src/cpu/channel.hpp"
#include "moe/src/cpu/routing.hpp"
#include "moe/src/plan/groups.hpp"

namespace weft::moe::engine {

// The rows that are added up.
struct SumsOf {
  weft_moe_type type;
  std::size_t hidden;
};

// What `combine` received: one message of each group that is active.
struct ReceivedPartialSums {
  const Groups& groups;
  const Attendance& attendance;
  const Channel& combine;
};

class Sums {
 public:
  Sums(const SumsOf& of,
       const ReceivedPartialSums& from,
       const Routing& routing,
       const weft_moe_outputs& outputs);

  // out: [tokens][hidden], or [tokens][topk][hidden] of WEFT_MOE_LANES.
  void write(std::byte* out) const;

 private:
  template <typename Visit>
  void for_lanes(Visit&& visit) const;
  template <typename Type>
  void add_groups(std::byte* out) const;
  template <typename Type>
  void add_lanes(std::byte* out) const;
  void copy_lanes(std::byte* out) const;

  SumsOf of_;
  ReceivedPartialSums from_;
  const Routing& routing_;
  const weft_moe_outputs& outputs_;
  std::size_t topk_;
  std::size_t row_bytes_;
};

}  // namespace weft::moe::engine
