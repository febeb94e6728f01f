// The start position of a search through an array of variables. OpenSHMEM requires that a series of
// calls to wait_until_any or test_any returns each variable that holds, not always the first. Each
// thread remembers the position after its last match for each of its recent arrays. The search of
// an array that was evicted starts at an evenly distributed position: a start at 0 would be unfair
// to a thread that polls many arrays in turn.
//
// Threads: each has its own state.
#pragma once

#include <array>
#include <cstddef>
#include <cstdint>

namespace weft::api::typed {

struct SearchStart {
  const void* array = nullptr;
  std::size_t position = 0;

  // Call after a match.
  void advance(std::size_t found, std::size_t count) {
    position = found + 1 == count ? 0 : found + 1;
  }
};

// For the array of `count` (at least 1) variables at `array`; valid until this thread's next call.
[[nodiscard]] inline SearchStart& search_start(const void* array, std::size_t count) {
  constexpr std::size_t kRemembered = 64;
  constexpr std::uint64_t kGolden = 0x9E3779B97F4A7C15;  // 2^64 / golden ratio, spreads evenly
  thread_local std::array<SearchStart, kRemembered> remembered;
  thread_local std::uint64_t turn = 0;
  SearchStart& start =
      remembered[reinterpret_cast<std::uintptr_t>(array) * kGolden >> 58U];  // the upper 6 bits
  if (start.array != array) {
    turn += kGolden;
    // Uses the upper bits: the lower ones have a short period, which can resonate with a program
    // that polls in turn.
    start = {array, ((turn >> 32U) * count >> 32U) % count};
  } else if (start.position >= count) {
    start.position = 0;
  }
  return start;
}

}  // namespace weft::api::typed
