// What the members of a team agree on in O(log size) steps: a value of any small type, and whether
// all have given the same.
//
// Pure, but for agree(): threads as Team.
#pragma once

#include <cstdint>
#include <cstring>
#include <string_view>
#include <type_traits>
#include <utility>

#include "src/collectives/team.hpp"

namespace weft::collectives {

// Team::agree for values of type T; fold(T& into, const T& from) combines two.
template <typename T, typename Fold>
Status agree(Team& team, T& value, Fold fold, std::string_view name) {
  static_assert(std::is_trivially_copyable_v<T> && sizeof(T) <= kAgreedBytesMax);
  const auto read = [](const AgreedValue& wire) {
    T result;
    std::memcpy(&result, wire.bytes.data(), sizeof(T));
    return result;
  };
  const auto write = [](AgreedValue& wire, const T& written) {
    std::memcpy(wire.bytes.data(), &written, sizeof(T));
  };
  AgreedValue wire;
  write(wire, value);
  const Status status = team.agree(
      wire,
      [&](AgreedValue& into, const AgreedValue& from) {
        T sum = read(into);
        fold(sum, read(from));
        write(into, sum);
      },
      name);
  if (status == Status::Ok) {
    value = read(wire);
  }
  return status;
}

// Whether some members gave the same value: the value of the lowest of them, and the lowest that
// gave another.
template <typename T>
struct Comparison {
  T first{};
  T other{};
  std::uint32_t first_index = 0;
  std::uint32_t other_index = 0;
  bool differs = false;
};

// One member's.
template <typename T>
Comparison<T> comparison_of(const T& value, std::uint32_t index) {
  return {.first = value, .other = {}, .first_index = index};
}

// Of disjoint sets of members, in any order.
template <typename T>
void fold(Comparison<T>& into, Comparison<T> from) {
  if (from.first_index < into.first_index) {
    std::swap(into, from);
  }
  const auto note = [&into](const T& value, std::uint32_t index) {
    if (!into.differs || index < into.other_index) {
      into.other = value;
      into.other_index = index;
      into.differs = true;
    }
  };
  if (from.first != into.first) {
    note(from.first, from.first_index);
  } else if (from.differs) {
    note(from.other, from.other_index);
  }
}

}  // namespace weft::collectives
