// Reads weft-perf's command line: `weft-perf NAME`, `weft-perf device NAME`,
// `weft-perf stream NAME`, with the options that all have and their own. Pure; the same with and
// without CUDA.
#pragma once

#include <optional>
#include <span>

#include "tools/perf/gpu/options.hpp"
#include "tools/perf/options.hpp"

namespace weft::perf {

// One of them; none if only --help was asked for and printed.
struct CommandLine {
  std::optional<Options> host;
  std::optional<gpu::Options> gpu;
};

// Throws std::invalid_argument with one sentence.
[[nodiscard]] CommandLine parse_command_line(std::span<const char* const> arguments);

}  // namespace weft::perf
