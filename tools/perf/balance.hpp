// Bytes per host and NIC after a run, the library's figures beside the kernel's, and how even they
// are. Pure: reports of the PEs in, table and ratios out.
//
// A put leaves no trace at its target, so the RX of a NIC is what all PEs put to its rails, plus
// what its own PEs got; its TX is what its PEs put, plus what others got from it.
#pragma once

#include <cstdint>
#include <map>
#include <optional>
#include <string>
#include <vector>

#include "tools/perf/intervals.hpp"
#include "tools/perf/nic_bytes.hpp"
#include "tools/perf/nic_rates.hpp"
#include "tools/perf/rail_share.hpp"

namespace weft::perf {

struct RailReport {
  std::string nic;
  std::string address;
  NicBytes bytes;
  std::uint64_t retries = 0;
  std::uint64_t errors = 0;
  NicRate rate;
};

// What counts of one PE: the loops that were timed, without warm-up and checks.
struct MeasuredPart {
  double seconds = 0;
  std::vector<RailChange> changes;
};

// What one PE did.
struct PeReport {
  std::uint32_t node = 0;
  std::string host_key;  // the same for PEs that see the same network devices
  std::vector<RailReport> rails;
  std::map<std::string, NicBytes> devices;  // by name, what the kernel counted
  std::vector<RailChange> changes;          // of its own rails, and of its peers'
  MeasuredPart measured;
};

struct NicReport {
  std::uint32_t node = 0;
  std::string nic;
  std::string address;
  std::vector<std::uint32_t> pes;  // whose rails use it
  NicBytes library;
  std::optional<NicBytes> kernel;  // none if several of the rows are one device
  std::uint64_t retries = 0;
  std::uint64_t errors = 0;
  // Whether its PEs take part in that direction.
  bool sends = false;
  bool receives = false;
  NicRate rate;
};

// max/mean over short intervals, and over steps; see intervals.hpp.
struct MomentReport {
  struct Directions {
    Evenness tx;
    Evenness rx;

    void add(const Directions& other);
  };

  // Of the NICs of each PE, and of all NICs of a node.
  struct Groups {
    Directions of_pe;
    Directions of_node;

    void add(const Groups& other);
  };

  // By whose counters.
  struct Counters {
    Groups kernel;
    Groups library;
  };

  double interval_s = 0;  // 0: nobody looked
  double look_s = 0;      // the mean time of a look at the kernel's counters
  Counters by_time;
  Counters by_step;
};

struct BalanceReport {
  struct Ratios {
    std::optional<double> tx;
    std::optional<double> rx;
  };

  std::vector<NicReport> nics;
  Ratios library;
  Ratios kernel;
  // The bytes that the library moved over rails, [from][to]; a get moves them from its target.
  std::vector<std::vector<std::uint64_t>> peers;
  std::optional<RailShare> share;
  std::string share_unknown_because;  // words, where there is no share
  MomentReport moments;
};

// A PE takes part in a direction if it moved at least a twentieth of what the busiest PE moved;
// acknowledgements and barriers alone do not count.
[[nodiscard]] BalanceReport make_balance_report(const std::vector<PeReport>& pes);

[[nodiscard]] std::string format_balance(const BalanceReport& report);

}  // namespace weft::perf
