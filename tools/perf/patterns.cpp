#include "tools/perf/patterns.hpp"

#include <algorithm>
#include <random>
#include <stdexcept>

#include <fmt/format.h>

#include "tools/perf/sizes.hpp"

namespace weft::perf {
namespace {

// Those at distances from 1 up to the last.
std::vector<std::uint32_t> neighbours_of(std::uint32_t pe,
                                         std::uint32_t pe_count,
                                         std::uint32_t last_distance) {
  std::vector<std::uint32_t> targets;
  for (std::uint32_t distance = 1; distance <= last_distance; ++distance) {
    targets.push_back((pe + distance) % pe_count);
  }
  return targets;
}

std::vector<std::uint32_t> half_way_round(std::uint32_t pe, std::uint32_t pe_count) {
  const std::uint32_t half = pe_count / 2;
  if (half == 0 || pe >= 2 * half) {
    return {};
  }
  return {pe < half ? pe + half : pe - half};
}

std::vector<std::uint32_t> drawn(const World& world, std::uint32_t pe, std::uint64_t step) {
  if (world.pe_count < 2) {
    return {};
  }
  const std::uint64_t draw = key_of({.source = pe, .dest = 0, .iteration = step}, world.seed);
  const auto distance = static_cast<std::uint32_t>(1 + draw % (world.pe_count - 1));
  return {(pe + distance) % world.pe_count};
}

std::vector<std::uint32_t> shuffled(const World& world, std::uint32_t pe) {
  std::vector<std::uint32_t> targets = neighbours_of(pe, world.pe_count, world.pe_count);
  std::mt19937_64 random(key_of({.source = pe, .dest = 0, .iteration = 0}, world.seed));
  std::ranges::shuffle(targets, random);
  return targets;
}

}  // namespace

Pattern parse_pattern(std::string_view name) {
  if (name == "alltoall") {
    return Pattern::AllToAll;
  }
  if (name == "incast") {
    return Pattern::Incast;
  }
  if (name == "pairs") {
    return Pattern::Pairs;
  }
  if (name == "random") {
    return Pattern::Random;
  }
  if (name == "shuffled") {
    return Pattern::Shuffled;
  }
  throw std::invalid_argument(
      fmt::format("--pattern {}: use alltoall, shuffled, incast, pairs or random", name));
}

std::vector<std::uint32_t> targets_of(Pattern pattern,
                                      const World& world,
                                      std::uint32_t pe,
                                      std::uint64_t step) {
  switch (pattern) {
    case Pattern::AllToAll:
      return neighbours_of(pe, world.pe_count, world.pe_count);
    case Pattern::Shuffled:
      return shuffled(world, pe);
    case Pattern::AllOthers:
      return neighbours_of(pe, world.pe_count, world.pe_count - 1);
    case Pattern::Incast:
      return pe == 0 ? std::vector<std::uint32_t>{} : std::vector<std::uint32_t>{0};
    case Pattern::Pairs:
      return half_way_round(pe, world.pe_count);
    case Pattern::Random:
      return drawn(world, pe, step);
    case Pattern::OneWay:
      return pe == world.first ? std::vector<std::uint32_t>{world.second}
                               : std::vector<std::uint32_t>{};
    case Pattern::BothWays:
      if (pe == world.first) {
        return {world.second};
      }
      return pe == world.second ? std::vector<std::uint32_t>{world.first}
                                : std::vector<std::uint32_t>{};
  }
  return {};
}

std::vector<std::uint32_t> initiators_to(Pattern pattern,
                                         const World& world,
                                         std::uint32_t pe,
                                         std::uint64_t step) {
  std::vector<std::uint32_t> initiators;
  for (std::uint32_t other = 0; other < world.pe_count; ++other) {
    const std::vector<std::uint32_t> targets = targets_of(pattern, world, other, step);
    if (std::ranges::find(targets, pe) != targets.end()) {
      initiators.push_back(other);
    }
  }
  return initiators;
}

}  // namespace weft::perf
