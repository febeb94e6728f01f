// Tracks whether a PE addresses many peers in turn or the same peer repeatedly. The score increases
// when an operation goes to another peer than the previous one, and decreases when it goes to the
// same. Pure.
//
// A PE that fans out leaves bulk copies to the targets, which work in parallel. A PE that repeats
// copies itself, without the extra hop.
#pragma once

#include <algorithm>
#include <cstdint>

#include "src/base/ids.hpp"

namespace weft::transport::cma {

struct FanOut {
  static constexpr std::uint32_t kScoreMax = 16;
  static constexpr std::uint32_t kScoreWide =
      8;  // half way: one repeat or one change does not decide

  Pe last{~std::uint32_t{0}};
  std::uint32_t score = 0;

  // The state after one more operation, to `peer`.
  [[nodiscard]] constexpr FanOut after(Pe peer) const {
    const bool changed = peer != last && last != Pe(~std::uint32_t{0});
    return {.last = peer,
            .score = changed ? std::min(score + 1, kScoreMax) : score - std::min(score, 1U)};
  }

  [[nodiscard]] constexpr bool is_wide() const { return score >= kScoreWide; }

  // Encoded as one word, so that threads share it without a lock; a lost update does no harm.
  [[nodiscard]] constexpr std::uint64_t encode() const {
    return std::uint64_t{last.value} << 32U | score;
  }

  [[nodiscard]] static constexpr FanOut decode(std::uint64_t word) {
    return {.last = Pe(static_cast<std::uint32_t>(word >> 32U)),
            .score = static_cast<std::uint32_t>(word)};
  }
};

}  // namespace weft::transport::cma
