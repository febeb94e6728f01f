// How even NICs are by the library's counters, in each interval and in each step. Pure.
//
// A put is counted where it is posted, so what a NIC received in an interval is known to its
// senders: each PE says what it moved over its own rails and to or from the rails of its peers, and
// PE 0 adds up what carries the same number. A number is a multiple of the interval on the job's
// clock, or that of a step.
#pragma once

#include <chrono>
#include <cstddef>
#include <cstdint>
#include <map>
#include <string>
#include <utility>
#include <vector>

#include "tools/perf/balance.hpp"
#include "tools/perf/intervals.hpp"
#include "tools/perf/nic_groups.hpp"

namespace weft::perf {

struct LibraryInterval {
  std::uint64_t number = 0;
  std::vector<RailChange> rails;
};

// What the columns of a PE's samples are: its own rails, then those of its peers. The counters are
// cumulative; rx of a rail of its own holds messages that arrived as well as gets.
struct LibraryColumns {
  std::uint32_t me = 0;
  std::vector<RailPlace> rails;
};

// `bytes`: what each column moved. Only rails that moved any, and without the messages that a rail
// received, which stand in their senders' puts, too: what was got is known from the peers' side
// over all rails, and is shared out over this PE's rails as their rx is. Exact unless gets and
// messages meet.
[[nodiscard]] std::vector<RailChange> rail_changes(const LibraryColumns& columns,
                                                   const std::vector<NicBytes>& bytes);

// As the owner of the rail counts it, in a change that `pe` saw.
[[nodiscard]] NicBytes bytes_of_rail(const RailChange& change, std::uint32_t pe);

// Only intervals with a look at both of their ends, each at most a quarter of an interval late.
[[nodiscard]] std::vector<LibraryInterval> intervals_by_time(
    const std::vector<CounterSample>& samples,
    const LibraryColumns& columns,
    std::chrono::nanoseconds interval);

[[nodiscard]] std::vector<LibraryInterval> intervals_by_step(
    const std::vector<CounterSample>& samples, const LibraryColumns& columns);

// For the way to PE 0: as many as fit into `bytes`, at least one, beginning at `next`, which is
// moved on.
[[nodiscard]] std::string format_intervals(const std::vector<LibraryInterval>& intervals,
                                           std::size_t bytes,
                                           std::size_t& next);
[[nodiscard]] std::vector<LibraryInterval> parse_intervals(const std::string& text);

// Adds up what all PEs say.
class LibraryTotals {
 public:
  // By PE, then by its rail: the row of BalanceReport::nics.
  using Rows = std::vector<std::vector<std::size_t>>;

  // If steps end with a barrier, and in intervals, one that some PE says nothing of does not count.
  // Else each PE's steps stand alone, with what it put and got over rails of its own.
  LibraryTotals(Rows rows, std::size_t row_count, StepEnd step_end);

  void add(std::uint32_t pe, const LibraryInterval& interval);

  // Adds to `evenness`. `rule` without rates: these are the groups'. `seconds`: of an interval.
  void judge(const std::vector<NicGroup>& groups,
             IntervalRule rule,
             double seconds,
             MomentReport::Groups& evenness) const;

 private:
  struct Total {
    std::size_t pes = 0;  // that said something
    std::vector<NicBytes> nics;
  };

  Rows rows_;
  std::size_t row_count_;
  StepEnd step_end_;
  std::map<std::pair<std::uint64_t, std::uint32_t>, Total>
      totals_;  // by number, then by PE if alone
};

}  // namespace weft::perf
