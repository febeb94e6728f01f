// What the user asked `weft-perf device NAME` or `weft-perf stream NAME` for (../command_line.hpp
// reads it), and what the library is told of it. Pure; the same with and without CUDA.
#pragma once

#include <cstddef>
#include <cstdint>
#include <optional>
#include <span>
#include <string>
#include <string_view>
#include <utility>
#include <vector>

#include "tools/perf/gpu/benchmark.hpp"
#include "tools/perf/options.hpp"

namespace weft::perf::gpu {

struct Options : CommonOptions {
  const Benchmark* benchmark = nullptr;  // never null once parsed
  Kind kind = Kind::PutBw;               // the benchmark's, or what --dir makes of it
  std::string name;                      // the benchmark's
  std::uint32_t ctas = 32;
  std::uint32_t threads = 256;
  std::vector<Scope> scopes;
  std::size_t paged_bytes = std::size_t{1}
                            << 30U;  // paged_write: what all passes move at most, but for one
  bool uses_graph = false;           // of streams: also replayed from a CUDA graph
};

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
