// One place in a tree over places 0 to count - 1, whose root is 0: those of n's children are
// n * kTreeArity + 1 and the next ones.
//
// A value; any thread.
#pragma once

#include <algorithm>
#include <cstdint>

#include "src/collectives/control.hpp"

namespace weft::collectives {

struct TreePlace {
  std::uint32_t place = 0;
  std::uint32_t count = 1;

  [[nodiscard]] constexpr bool is_root() const { return place == 0; }

  // Not of the root.
  [[nodiscard]] constexpr std::uint32_t parent() const { return (place - 1) / kTreeArity; }

  // Among its parent's children, from 0.
  [[nodiscard]] constexpr std::uint32_t child_index() const { return (place - 1) % kTreeArity; }

  // The first child, and one behind the last; `count` both if there is none.
  [[nodiscard]] constexpr std::uint32_t children_begin() const { return at(1); }

  [[nodiscard]] constexpr std::uint32_t children_end() const { return at(kTreeArity + 1); }

  [[nodiscard]] constexpr std::uint32_t child_count() const {
    return children_end() - children_begin();
  }

 private:
  [[nodiscard]] constexpr std::uint32_t at(std::uint32_t child) const {
    return static_cast<std::uint32_t>(
        std::min<std::uint64_t>(std::uint64_t{place} * kTreeArity + child, count));
  }
};

}  // namespace weft::collectives
