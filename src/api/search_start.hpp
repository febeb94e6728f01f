// Where a search through an array of variables begins, so that wait_until_any and test_any come to every
// variable that holds and not always to the first: OpenSHMEM demands that a series of calls returns each of
// them. Each thread remembers the place behind its last find in each of its last arrays. An array that was
// forgotten begins anywhere, evenly: a start at 0 would be unfair to whoever polls many arrays in turn.
//
// Threads: each has its own.
#pragma once

#include <array>
#include <cstddef>
#include <cstdint>

namespace weft::api::typed {

struct SearchStart {
  const void* array = nullptr;
  std::size_t position = 0;

  // After a find.
  void advance(std::size_t found, std::size_t count) {
    position = found + 1 == count ? 0 : found + 1;
  }
};

// Of the array of `count` (at least 1) at `array`; valid until this thread asks for another.
[[nodiscard]] inline SearchStart& search_start(const void* array, std::size_t count) {
  constexpr std::size_t kRemembered = 64;
  constexpr std::uint64_t kGolden = 0x9E3779B97F4A7C15;  // 2^64 / golden ratio, spreads evenly
  thread_local std::array<SearchStart, kRemembered> remembered;
  thread_local std::uint64_t turn = 0;
  SearchStart& start =
      remembered[reinterpret_cast<std::uintptr_t>(array) * kGolden >> 58U];  // the upper 6 bits
  if (start.array != array) {
    turn += kGolden;
    // The upper bits: the lower ones repeat soon, and in step with a program that polls in turn.
    start = {array, ((turn >> 32U) * count >> 32U) % count};
  } else if (start.position >= count) {
    start.position = 0;
  }
  return start;
}

}  // namespace weft::api::typed
