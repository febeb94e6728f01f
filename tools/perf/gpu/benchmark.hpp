// The registry of `weft-perf device NAME` and `weft-perf stream NAME`: benchmarks of kernels that
// call Weft, and of what the host puts on a CUDA stream.
//
// To add one: docs/DEVELOPING.md, "A benchmark of weft-perf".
#pragma once

#include <cstddef>
#include <cstdint>
#include <span>
#include <string_view>
#include <vector>

#include "tools/perf/sizes.hpp"

namespace weft::perf::gpu {

class Session;

// Which of the two words the command line begins with.
enum class Side : std::uint8_t { Device, Stream };

// What benchmarks that share a function are told apart by.
enum class Kind : std::uint8_t {
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
  TaggedPingPong,
  AtomicLatency,
  AtomicBw,
  Alltoall,
  Barrier,
  Sync,
  SyncRelaxed,
  Bcast,
  Fcollect,
  Reduction,
  ReduceScatter,
  RingRate,
  PutSignalRate,
  PutvRate,
  PagedWrite,
};

enum class Scope : std::uint8_t { Thread, Warp, Block, Grid };
inline constexpr std::size_t kScopeCount = 4;

[[nodiscard]] std::string_view name_of(Scope scope);

struct Benchmark {
  Side side = Side::Device;
  Kind kind = Kind::PutBw;
  std::string_view name;
  std::string_view help;
  SizeRange sizes;
  std::uint32_t threads = 0;
  std::vector<Scope> scopes;   // that are measured without -s
  std::vector<Scope> allowed;  // that there are
  std::uint32_t pe_count_min = 1;
  // Collective over all PEs.
  void (*run)(Session& session) = nullptr;
};

// In the order of --help.
[[nodiscard]] std::span<const Benchmark> benchmarks();

}  // namespace weft::perf::gpu
