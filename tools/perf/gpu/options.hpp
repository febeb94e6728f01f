// What the user asked `weft-perf device NAME` or `weft-perf stream NAME` for: benchmarks of kernels that
// call Weft, and of what the host puts on a CUDA stream. Pure; the same with and without CUDA.
#pragma once

#include <cstddef>
#include <cstdint>
#include <optional>
#include <span>
#include <string>
#include <string_view>
#include <utility>
#include <vector>

#include "tools/perf/options.hpp"

namespace weft::perf::gpu {

// Which of the two words the command line begins with.
enum class Side : std::uint8_t { Device, Stream };

enum class Benchmark : std::uint8_t {
  PutBw,
  GetBw,
  PBw,
  PutLatency,
  GetLatency,
  PLatency,
  GLatency,
  PutPingPong,
  PutSignalPingPong,
  SignalPingPong,
  AtomicLatency,
  AtomicBw,
  Alltoall,
  Barrier,
  Sync,
  Bcast,
  Fcollect,
  Reduction,
  ReduceScatter,
  RingRate,
  PutSignalRate,
};

enum class Scope : std::uint8_t { Thread, Warp, Block, Grid };
inline constexpr std::size_t kScopeCount = 4;

[[nodiscard]] std::string_view name_of(Scope scope);

// A benchmark's name, and what it does unless told otherwise.
struct Defaults {
  Side side = Side::Device;
  Benchmark benchmark = Benchmark::PutBw;
  std::string_view name;
  std::string_view help;
  SizeRange sizes;
  std::uint32_t threads = 256;
  std::vector<Scope> scopes;   // that are measured without -s
  std::vector<Scope> allowed;  // that there are
};

[[nodiscard]] std::span<const Defaults> benchmarks();

struct Options {
  Side side = Side::Device;
  Benchmark benchmark = Benchmark::PutBw;
  std::string name;
  SizeRange sizes;
  bool end_is_given = false;  // else few threads end at smaller sizes
  std::uint64_t iterations = 1000;
  std::uint64_t warmup_iterations = 20;
  std::uint32_t ctas = 32;
  std::uint32_t threads = 256;
  std::vector<Scope> scopes;
  ElementType type;
  std::optional<weft_reduction> reduction = WEFT_SUM;  // none: each that the type allows
  AtomicKind atomic = AtomicKind::All;
  bool bidirectional = false;
  bool verifies = true;
  bool uses_graph = false;   // of streams: also replayed from a CUDA graph
  bool prints_json = false;  // to stdout, instead of tables
  std::string output;        // JSON goes here; tables stay on stdout
  std::string command_line;
};

// Whether the command line begins with one of the two words.
[[nodiscard]] bool is_for_gpu(std::span<const char* const> arguments);

// Throws std::invalid_argument with one sentence. None if only --help was asked for and printed.
[[nodiscard]] std::optional<Options> parse_options(std::span<const char* const> arguments);

// The largest size of a row in that scope.
[[nodiscard]] std::size_t largest_size(const Options& options, Scope scope);

// Fewer iterations where one moves much: `budget` bytes in all, at least 4.
[[nodiscard]] std::uint64_t iterations_for(const Options& options,
                                           std::size_t bytes,
                                           std::size_t budget);

// The variables for weft_init: a device heap that is large enough, and a small one on the host.
[[nodiscard]] std::vector<std::pair<std::string, std::string>> environment_of(
    const Options& options);

}  // namespace weft::perf::gpu
