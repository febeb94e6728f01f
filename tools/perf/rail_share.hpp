// The share of the rails: how much of the time that a measured part took its NICs would have
// needed, had each PE's bytes been spread over its NICs as their rates are. Pure.
//
// 1 is the best that any choice of rails can reach. A NIC's need, in one direction, is the sum over
// the PEs that use it of (the PE's bytes) / (the sum of the rates of the PE's NICs); the greatest
// need of all NICs and directions is the time needed.
#pragma once

#include <cstddef>
#include <vector>

#include "tools/perf/nic_bytes.hpp"

namespace weft::perf {

// One PE in the measured part.
struct PeLoad {
  std::vector<std::size_t> nics;  // indexes into the list of NICs, all different
  NicBytes bytes;
};

struct RailShare {
  double needed_s = 0;
  double taken_s = 0;

  [[nodiscard]] double share() const { return taken_s > 0 ? needed_s / taken_s : 0; }
};

// `rates`: payload bytes per second of each NIC in one direction, none of them 0.
[[nodiscard]] RailShare share_of_rails(const std::vector<PeLoad>& pes,
                                       const std::vector<double>& rates,
                                       double taken_s);

}  // namespace weft::perf
