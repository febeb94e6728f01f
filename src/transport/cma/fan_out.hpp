// Whether a PE talks to many peers in turn or to the same one again and again: the score goes up when
// an operation goes to another peer than the last one, and decays when it repeats. Pure.
//
// Who fans out leaves bulk copies to the targets (they work at the same time); who repeats copies
// itself, without a detour.
#pragma once

#include <algorithm>
#include <cstdint>

#include "src/base/ids.hpp"

namespace weft::transport::cma {

struct FanOut {
  static constexpr std::uint32_t kScoreMax = 16;
  static constexpr std::uint32_t kScoreWide =
      8;  // half way: neither one repeat nor one change decides

  Pe last{~std::uint32_t{0}};
  std::uint32_t score = 0;

  // After one more operation, towards `peer`.
  [[nodiscard]] constexpr FanOut after(Pe peer) const {
    const bool changed = peer != last && last != Pe(~std::uint32_t{0});
    return {.last = peer,
            .score = changed ? std::min(score + 1, kScoreMax) : score - std::min(score, 1U)};
  }

  [[nodiscard]] constexpr bool is_wide() const { return score >= kScoreWide; }

  // One word, so that threads share it without a lock; a lost update does no harm.
  [[nodiscard]] constexpr std::uint64_t encode() const {
    return std::uint64_t{last.value} << 32U | score;
  }

  [[nodiscard]] static constexpr FanOut decode(std::uint64_t word) {
    return {.last = Pe(static_cast<std::uint32_t>(word >> 32U)),
            .score = static_cast<std::uint32_t>(word)};
  }
};

}  // namespace weft::transport::cma
