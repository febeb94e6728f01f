// Who talks to whom in a step. Pure, and the same on every PE, so that a PE can also say who talks
// to it. A pattern names the initiator's targets; the initiator puts to them or gets from them.
#pragma once

#include <cstdint>
#include <string_view>
#include <vector>

namespace weft::perf {

enum class Pattern : std::uint8_t {
  AllToAll,   // everybody with everybody, itself included
  Shuffled,   // the same, each PE in an order of its own
  AllOthers,  // everybody with every other
  Incast,     // all others with PE 0
  Pairs,      // PE i with PE i + n/2 and back; with an odd n the last one rests
  Random,     // each with one other, drawn anew in each step
  OneWay,     // first with second: the tests for two PEs
  BothWays,   // the same in both directions at once
};

// Whether the sizes of a row are divided among all PEs.
[[nodiscard]] constexpr bool is_to_all(Pattern pattern) {
  return pattern == Pattern::AllToAll || pattern == Pattern::Shuffled;
}

// Throws std::invalid_argument with a sentence; knows those that --pattern offers.
[[nodiscard]] Pattern parse_pattern(std::string_view name);

struct World {
  std::uint32_t pe_count = 1;
  std::uint32_t first = 0;  // of the tests for two PEs
  std::uint32_t second = 0;
  std::uint64_t seed = 1;  // of Random and Shuffled
};

// In the order in which `pe` begins them: with its next neighbour first, as libraries do, so that
// nobody is hit by all at once.
[[nodiscard]] std::vector<std::uint32_t> targets_of(Pattern pattern,
                                                    const World& world,
                                                    std::uint32_t pe,
                                                    std::uint64_t step);

// The PEs whose targets include `pe`.
[[nodiscard]] std::vector<std::uint32_t> initiators_to(Pattern pattern,
                                                       const World& world,
                                                       std::uint32_t pe,
                                                       std::uint64_t step);

}  // namespace weft::perf
