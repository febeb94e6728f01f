// The registry of weft-perf's benchmarks: a name, a sentence, what it does unless told otherwise,
// and a function. `weft-perf device` and `weft-perf stream` have theirs in gpu/benchmark.hpp, with
// the same command line, tables and JSON.
//
// To add one: docs/DEVELOPING.md, "A benchmark of weft-perf".
#pragma once

#include <cstdint>
#include <span>
#include <string_view>

#include "tools/perf/patterns.hpp"
#include "tools/perf/sizes.hpp"

namespace weft::perf {

struct Run;  // runs.hpp

struct Defaults {
  SizeRange sizes;
  std::uint64_t iterations = 100;
  std::uint64_t warmup_iterations = 10;
  std::uint64_t window = 1;  // steps between two quiets
  Pattern pattern = Pattern::AllToAll;
  bool reads = false;
};

// What a PE has room for in symmetric memory.
enum class Room : std::uint8_t {
  OnePeer,   // messages of a row's size, to or from one PE
  AllPeers,  // such messages of every PE
  Divided,   // a row's size in all, divided among the PEs
};

struct Benchmark {
  std::string_view name;
  std::string_view help;
  std::uint32_t pe_count_min = 2;
  Defaults defaults;
  Room room = Room::OnePeer;
  // Collective over all PEs; prints its table as it goes.
  void (*run)(const Run& run) = nullptr;
};

// In the order of --help.
[[nodiscard]] std::span<const Benchmark> benchmarks();

}  // namespace weft::perf
