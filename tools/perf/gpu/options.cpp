#include "tools/perf/gpu/options.hpp"

#include <algorithm>

#include <fmt/format.h>

namespace weft::perf::gpu {
namespace {

constexpr std::size_t kMegabyte = std::size_t{1} << 20U;
constexpr std::size_t kHeapReserve = 16 * kMegabyte;

}  // namespace

std::string_view name_of(Scope scope) {
  switch (scope) {
    case Scope::Thread:
      return "thread";
    case Scope::Warp:
      return "warp";
    case Scope::Block:
      return "block";
    case Scope::Grid:
      return "grid";
  }
  return "";
}

std::size_t largest_size(const Options& options, Scope scope) {
  // One thread moves 1 MiB in some ms, one warp 16 MiB.
  constexpr std::size_t kOfThread = kMegabyte;
  constexpr std::size_t kOfWarp = 16 * kMegabyte;
  const std::size_t end = options.sizes.end;
  if (options.end_is_given || scope == Scope::Block || scope == Scope::Grid) {
    return end;
  }
  return std::min(end, scope == Scope::Thread ? kOfThread : kOfWarp);
}

std::uint64_t iterations_for(const Options& options, std::size_t bytes, std::size_t budget) {
  constexpr std::size_t kLeast = 4;
  const std::size_t affordable = std::max(kLeast, budget / std::max<std::size_t>(1, bytes));
  return std::min<std::uint64_t>(affordable, options.iterations);
}

std::vector<std::pair<std::string, std::string>> environment_of(const Options& options) {
  const std::size_t buffers = 2 * options.sizes.end;
  const std::size_t heap = buffers + buffers / 8 + kHeapReserve;
  return {{"WEFT_DEVICE_HEAP_SIZE", fmt::format("{}M", heap / kMegabyte + 1)}};
}

}  // namespace weft::perf::gpu
