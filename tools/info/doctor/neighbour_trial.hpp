// Writes to another PE through the public interface, as a program would, and what the rails'
// counters say of it.
//
// Threads: one.
#pragma once

#include <weft/weft.h>

#include <cstddef>
#include <cstdint>
#include <string>
#include <vector>

#include "tools/info/doctor/finding.hpp"

namespace weft::info {

// All rails of this PE. Throws Error.
[[nodiscard]] std::vector<weft_rail_counters> read_rails();

// Symmetric memory: half is written to, the other half is what is written.
struct TrialMemory {
  std::byte* block = nullptr;
  std::size_t bytes = 0;
};

class NeighbourTrial {
 public:
  NeighbourTrial(int neighbour, const Reporter& reporter);

  // Opens the connections of all rails to the neighbour. Before anything else is written. Throws
  // Error.
  void connect();
  // Writes over all rails, reads back, compares and measures; each rail is a finding. Throws Error.
  void write(const std::string& who, TrialMemory memory);

 private:
  struct Figures {
    std::uint64_t connections = 0;
    std::vector<std::uint64_t> small_ns;  // of 8 bytes each
    bool has_carried = false;             // data that was compared
    double bytes_per_s = 0;
  };

  // Writes of `bytes`, complete when it returns; how many bytes each rail carried.
  std::vector<std::uint64_t> put(std::size_t bytes, std::size_t count);
  // False if bytes were wrong, which it reports.
  bool compare();
  void measure_small();
  void measure_rate();
  void report(const std::string& who) const;
  void report_wrong(const std::vector<std::uint64_t>& carried) const;

  int neighbour_;
  const Reporter& reporter_;
  std::vector<weft_rail_counters> rails_;
  std::vector<Figures> figures_;  // by rail
  double connect_ms_ = 0;
  std::byte* target_ = nullptr;
  std::byte* source_ = nullptr;
  std::size_t bytes_ = 0;      // of each
  std::uint64_t took_ns_ = 0;  // the last put()
};

}  // namespace weft::info
