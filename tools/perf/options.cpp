#include "tools/perf/options.hpp"

#include <algorithm>

#include <fmt/format.h>

#include "tools/perf/benchmark.hpp"

namespace weft::perf {
namespace {

constexpr std::size_t kMegabyte = std::size_t{1} << 20U;
constexpr std::size_t kWindowBytesMax = 64 * kMegabyte;
constexpr std::size_t kHeapReserve = 16 * kMegabyte;
constexpr std::size_t kGatherBytesPerPe = 64U << 10U;
// Fewer than 50 looks say little, and the thread that takes them is not worth its cost.
constexpr double kSampledSecondsMin = 0.5;
constexpr std::uint64_t kSampleIntervalMs = 10;

std::size_t slots_bytes(const Options& options, std::size_t pe_count) {
  const Room room = options.benchmark->room;
  const bool all_peers = room != Room::OnePeer;
  std::size_t most = 0;
  for (const std::size_t size : size_sequence(options.sizes)) {
    const bool is_divided = room == Room::Divided && is_to_all(options.pattern);
    const std::size_t message = is_divided ? size / pe_count + 64 : size + 64;
    // Messages have places of their own only where each is looked at.
    const std::size_t slots =
        all_peers && !options.verifies ? 1 : window_for(options, message) * options.count_per_step;
    most = std::max(most, message * slots * (all_peers ? pe_count : 1));
  }
  return most;
}

}  // namespace

std::uint64_t sample_interval_of(const Options& options) {
  const bool is_long = options.duration_s >= kSampledSecondsMin;
  return options.sample_interval_ms.value_or(is_long ? kSampleIntervalMs : 0);
}

std::uint64_t window_for(const Options& options, std::size_t message_bytes) {
  const std::uint64_t fits = kWindowBytesMax / std::max<std::size_t>(message_bytes, 1);
  return std::clamp<std::uint64_t>(options.window, 1, std::max<std::uint64_t>(fits, 1));
}

std::vector<std::pair<std::string, std::string>> environment_of(const Options& options,
                                                                std::size_t pe_count) {
  std::vector<std::pair<std::string, std::string>> variables;
  if (!options.policy.empty()) {
    variables.emplace_back("WEFT_RAIL_POLICY", options.policy);
  }
  if (options.warms_up) {
    variables.emplace_back("WEFT_WARMUP", *options.warms_up ? "yes" : "no");
  }
  // Twice the slots, for source and destination; blocks round up, and some are allocated in turn.
  const std::size_t buffers = 2 * slots_bytes(options, pe_count) + 2 * options.total_bytes;
  const std::size_t heap = buffers + buffers / 8 + kHeapReserve + pe_count * kGatherBytesPerPe;
  variables.emplace_back("WEFT_HEAP_SIZE", fmt::format("{}M", heap / kMegabyte + 1));
  return variables;
}

}  // namespace weft::perf
