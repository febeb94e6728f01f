// Whether waits yield. A yield that takes long has given the core to a program that computes, for
// as long as the scheduler lets that run, and may be charged for it (Linux 6.18: a whole slice). A
// thread that sleeps is charged for nothing, and is woken at once. So for a while after a slow
// yield waits go straight to sleep: for twice as long as it took, so that what happens once costs
// little, and for twice as long as the last time where yields are slow again after that.
//
// Threads: any.
#pragma once

#include <algorithm>
#include <cstdint>

#include "src/base/atomic.hpp"

namespace weft::rma {

class Yields {
 public:
  static constexpr std::uint64_t kSlowNs = 200'000;
  static constexpr std::uint64_t kPauseNsMax = 100'000'000;

  [[nodiscard]] bool is_worth(std::uint64_t now_ns) const {
    // relaxed: a stale value costs one more slow yield
    return now_ns >= AtomicRef(next_ns_).load(std::memory_order_relaxed);
  }

  // One has taken so long.
  void note(std::uint64_t before_ns, std::uint64_t after_ns) {
    const std::uint64_t took_ns = after_ns - before_ns;
    if (took_ns <= kSlowNs) {
      return;
    }
    // relaxed: only lengths and ends of pauses; of two threads' that end at once either will do
    const std::uint64_t last_ns = AtomicRef(pause_ns_).load(std::memory_order_relaxed);
    const std::uint64_t next_ns = AtomicRef(next_ns_).load(std::memory_order_relaxed);
    // Yields have been quick for longer than waits last went without: that was another program.
    const bool is_new = before_ns > next_ns + last_ns;
    const std::uint64_t pause_ns =
        std::min(is_new ? 2 * took_ns : std::max(2 * last_ns, 2 * took_ns), kPauseNsMax);
    // relaxed: as above
    AtomicRef(pause_ns_).store(pause_ns, std::memory_order_relaxed);
    AtomicRef(next_ns_).store(after_ns + pause_ns, std::memory_order_relaxed);
  }

 private:
  mutable std::uint64_t next_ns_ = 0;
  mutable std::uint64_t pause_ns_ = 0;
};

}  // namespace weft::rma
