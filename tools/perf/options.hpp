// What the user asked weft-perf for. Pure parsing; `environment_of` says what the library is told.
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

enum class Subcommand : std::uint8_t {
  PutBw,
  GetBw,
  PutLatency,
  GetLatency,
  PutSignalRate,
  PutSignalPingPong,
  AtomicLatency,
  BarrierLatency,
  AlltoallLatency,
  PagedWrite,
  ColdStart,
  AllGetAll,
  AllPutAll,
  ExchangeGet,
  MessageRate,
  Alltoall,
  Broadcast,
  Fcollect,
  Collect,
  Reduction,
  Barrier,
  Sync,
};

// Its name, and what it does unless told otherwise.
struct SubcommandDefaults {
  Subcommand subcommand = Subcommand::PutBw;
  std::string_view name;
  std::string_view help;
  std::uint32_t pe_count_min = 2;
  SizeRange sizes;
  std::uint64_t iterations = 100;
  std::uint64_t warmup_iterations = 10;
  std::uint64_t window = 64;
  Pattern pattern = Pattern::AllToAll;
  bool reads = false;
};

[[nodiscard]] std::span<const SubcommandDefaults> subcommands();
[[nodiscard]] const SubcommandDefaults& defaults_of(Subcommand subcommand);

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

struct Options {
  Subcommand subcommand = Subcommand::PutBw;
  SizeRange sizes;
  std::uint64_t iterations = 0;
  std::uint64_t warmup_iterations = 0;
  double duration_s = 0;  // 0: as many as `iterations`
  std::uint64_t window = 1;
  std::uint64_t count_per_step = 1;
  ElementType type;
  AtomicKind atomic = AtomicKind::All;
  Pattern pattern = Pattern::AllToAll;
  SizeRule size_rule;
  std::uint64_t seed = 1;
  std::optional<weft_reduction> reduction = WEFT_SUM;  // none: each that the type allows
  std::uint64_t repeats = 5;                           // of a row; the median counts
  std::optional<bool> aggregates;                      // none: both ways, a row each
  bool bidirectional = false;
  bool reads = false;
  bool alternates_signal = false;
  bool collective = false;
  bool verifies = false;
  bool shows_counters = true;
  std::optional<bool> warms_up;                      // none: as WEFT_WARMUP says
  std::string policy;                                // empty: as WEFT_RAIL_POLICY says
  std::size_t total_bytes = std::size_t{16} << 20U;  // paged_write
  std::uint64_t interval_ms = 200;                   // paged_write
  // Between two looks at the NICs; none: 10 where the run is long enough, 0: never.
  std::optional<std::uint64_t> sample_interval_ms;
  std::uint64_t nic_rate_bits_per_s = 0;  // 0: as the lab or the kernel says
  bool prints_json = false;               // to stdout, instead of tables
  std::string output;                     // JSON goes here; tables stay on stdout
  std::string command_line;
};

// Throws std::invalid_argument with one sentence. None if only --help was asked for and printed.
[[nodiscard]] std::optional<Options> parse_options(std::span<const char* const> arguments);

// The variables that carry the options to the library, for weft_init; `pe_count` is a guess from the
// launcher's variables. The heap is made large enough for the run unless WEFT_HEAP_SIZE is set.
[[nodiscard]] std::vector<std::pair<std::string, std::string>> environment_of(
    const Options& options, std::size_t pe_count);

// How often the NICs are looked at during the run; 0: never.
[[nodiscard]] std::uint64_t sample_interval_of(const Options& options);

// Steps between two quiets, cut so that large messages do not need gigabytes of buffers.
[[nodiscard]] std::uint64_t window_for(const Options& options, std::size_t message_bytes);

}  // namespace weft::perf
