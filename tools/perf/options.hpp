// What the user asked weft-perf for (command_line.hpp reads it), and what the library is told of
// it. Pure.
#pragma once

#include <weft/collectives.h>

#include <array>
#include <cstdint>
#include <optional>
#include <span>
#include <string>
#include <string_view>
#include <utility>
#include <vector>

#include "tools/perf/patterns.hpp"
#include "tools/perf/sizes.hpp"

namespace weft::perf {

inline constexpr int kStatusFailure = 1;
inline constexpr int kStatusUsage = 2;

// -d: only its size matters, and the name in the table, except to reductions.
struct ElementType {
  std::string name = "int32";
  std::size_t bytes = 4;
  weft_type type = WEFT_INT32;
};

enum class AtomicKind : std::uint8_t {
  Set,
  Fetch,
  Add,
  FetchAdd,
  Inc,
  FetchInc,
  Swap,
  CompareSwap,
  And,
  Or,
  Xor,
  All,
};

// What all benchmarks understand, of the host and of GPUs.
struct CommonOptions {
  SizeRange sizes;
  bool end_is_given = false;  // --end
  std::uint64_t iterations = 0;
  std::uint64_t warmup_iterations = 0;
  ElementType type;
  std::optional<weft_reduction> reduction = WEFT_SUM;  // none: each that the type allows
  AtomicKind atomic = AtomicKind::All;
  bool bidirectional = false;
  bool verifies = false;
  bool prints_json = false;  // to stdout, instead of tables
  std::string output;        // JSON goes here; tables stay on stdout
  std::string command_line;
};

struct Benchmark;

struct Options : CommonOptions {
  const Benchmark* benchmark = nullptr;  // never null once parsed
  double duration_s = 0;                 // 0: as many as `iterations`
  std::uint64_t window = 1;
  std::uint64_t count_per_step = 1;
  Pattern pattern = Pattern::AllToAll;
  double start_apart_us = 0;  // the most that a PE waits before a window
  SizeRule size_rule;
  std::uint64_t seed = 1;
  std::uint64_t repeats = 5;       // of a row; the median counts
  std::optional<bool> aggregates;  // none: both ways, a row each
  bool reads = false;
  bool alternates_signal = false;
  bool collective = false;
  bool shows_counters = true;
  std::optional<bool> warms_up;                      // none: as WEFT_WARMUP says
  std::string policy;                                // empty: as WEFT_RAIL_POLICY says
  std::size_t total_bytes = std::size_t{16} << 20U;  // paged_write
  std::uint64_t interval_ms = 200;                   // paged_write
  std::uint64_t clients = 1;                         // paged_write
  // Between two looks at the NICs; none: 10 where the run is long enough, 0: never.
  std::optional<std::uint64_t> sample_interval_ms;
  std::uint64_t nic_rate_bits_per_s = 0;  // 0: as the lab or the kernel says
};

// The variables that carry the options to the library, for weft_init; `pe_count` is a guess from
// the launcher's variables. The heap is made large enough for the run unless WEFT_HEAP_SIZE is set.
[[nodiscard]] std::vector<std::pair<std::string, std::string>> environment_of(
    const Options& options, std::size_t pe_count);

// How often the NICs are looked at during the run; 0: never.
[[nodiscard]] std::uint64_t sample_interval_of(const Options& options);

// Steps between two quiets, cut so that large messages do not need gigabytes of buffers.
[[nodiscard]] std::uint64_t window_for(const Options& options, std::size_t message_bytes);

}  // namespace weft::perf
