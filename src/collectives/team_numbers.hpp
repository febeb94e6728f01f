// A set of team numbers, 0 to kTeamCountMax - 1. When a team is split, its members send each other
// the numbers that they have free, in 160 bits.
//
// A value; no thread but its owner's may change it.
#pragma once

#include <algorithm>
#include <array>
#include <bit>
#include <cstddef>
#include <cstdint>
#include <functional>

#include "src/collectives/control.hpp"

namespace weft::collectives {

class TeamNumbers {
 public:
  static constexpr std::size_t kWords = 3;
  using Words = std::array<std::uint64_t, kWords>;

  TeamNumbers() = default;

  explicit TeamNumbers(const Words& words) : words_(words) {}

  // From `first` on.
  static TeamNumbers all_from(std::uint32_t first) {
    TeamNumbers numbers;
    for (std::uint32_t number = first; number < kTeamCountMax; ++number) {
      numbers.add(number);
    }
    return numbers;
  }

  [[nodiscard]] bool has(std::uint32_t number) const { return (word(number) & bit(number)) != 0; }

  void add(std::uint32_t number) { words_[number / kBits] |= bit(number); }

  void remove(std::uint32_t number) { words_[number / kBits] &= ~bit(number); }

  void keep_those_of(const TeamNumbers& other) {
    std::ranges::transform(words_, other.words_, words_.begin(), std::bit_and<>());
  }

  [[nodiscard]] bool is_empty() const { return words_ == Words{}; }

  // The lowest; the set is not empty.
  [[nodiscard]] std::uint32_t first() const {
    std::uint32_t index = 0;
    while (words_[index] == 0) {
      ++index;
    }
    return index * kBits + static_cast<std::uint32_t>(std::countr_zero(words_[index]));
  }

  [[nodiscard]] const Words& words() const { return words_; }

 private:
  static constexpr std::uint32_t kBits = 64;

  static constexpr std::uint64_t bit(std::uint32_t number) {
    return std::uint64_t{1} << (number % kBits);
  }

  [[nodiscard]] std::uint64_t word(std::uint32_t number) const { return words_[number / kBits]; }

  Words words_{};
};

static_assert(kTeamCountMax <= 160, "a proposal of a split has room for them");

}  // namespace weft::collectives
