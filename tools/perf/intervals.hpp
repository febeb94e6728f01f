// How even NICs are at each moment: max/mean over short intervals, from samples of their counters.
// Pure.
//
// An interval lies between two samples that follow each other. max/mean of a group of NICs in one
// direction is the busiest one's bytes divided by the mean; where rates are known the time that the
// bytes need takes their place, so that a slow NIC that carries little is even. Intervals in which
// nobody was held up say nothing and do not count:
//   - by time: unless the busiest NIC carried at least half of what its rate allows (one piece of
//     64 KiB where the rate is not known), or if it is longer than twice the chosen interval, since
//     the sampler came late;
//   - by step: unless the group carried at least one piece for each of its NICs.
// A group has at least two NICs.
#pragma once

#include <cstddef>
#include <cstdint>
#include <vector>

#include "tools/perf/nic_bytes.hpp"

namespace weft::perf {

// All NICs at one moment; cumulative.
struct CounterSample {
  std::int64_t time_ns = 0;
  bool begins = false;  // the first of a measured part: no interval ends here
  std::vector<NicBytes> nics;
};

// What each NIC moved between two looks.
struct NicChange {
  double seconds = 0;
  std::vector<NicBytes> nics;
};

inline constexpr std::uint64_t kPieceBytes = std::uint64_t{64} << 10U;
// The smallest piece into which an operation is cut, by default: with fewer bytes in a step than
// one of these for each NIC, no policy could be even.
inline constexpr std::uint64_t kStepPieceBytes = std::uint64_t{16} << 10U;

struct IntervalRule {
  bool by_step = false;
  std::int64_t longest_ns = 0;  // by time: beyond it the sample came late
  std::uint64_t piece_bytes = kPieceBytes;
  std::vector<double> bytes_per_s;  // of each NIC; 0: not known
};

// Of the intervals that count.
struct Evenness {
  double sum = 0;
  double worst = 0;
  std::uint64_t count = 0;

  void add(double max_over_mean);
  void add(const Evenness& other);

  [[nodiscard]] double mean() const { return count == 0 ? 0 : sum / static_cast<double>(count); }
};

// Adds an interval to `evenness` if it counts. `group`: columns of `change.nics`.
void add_interval(const NicChange& change,
                  const std::vector<std::size_t>& group,
                  Direction direction,
                  const IntervalRule& rule,
                  Evenness& evenness);

// `group`: columns of the samples.
[[nodiscard]] Evenness evenness_of(const std::vector<CounterSample>& samples,
                                   const std::vector<std::size_t>& group,
                                   Direction direction,
                                   const IntervalRule& rule);

}  // namespace weft::perf
