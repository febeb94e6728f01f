// Monotonic time in strong units, and the pause instruction of a spin loop.
//
// Any thread may call these. Times of two processes on one node are comparable, those of two nodes
// are not. Wall-clock time is never used: it may be set back during a wait.
#pragma once

#include <chrono>
#include <cstdint>

namespace weft {

using Clock = std::chrono::steady_clock;
using Nanoseconds = std::chrono::nanoseconds;

[[nodiscard]] inline std::uint64_t now_ns() {
  return static_cast<std::uint64_t>(
      std::chrono::duration_cast<Nanoseconds>(Clock::now().time_since_epoch()).count());
}

inline void cpu_pause() {
#if defined(__x86_64__)
  __builtin_ia32_pause();
#elif defined(__aarch64__)
  asm volatile("isb" ::: "memory");
#endif
}

}  // namespace weft
