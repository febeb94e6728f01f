// Whether waits yield. A yield that takes long has given the core to a program that computes, for
// as long as the scheduler lets that run, and may be charged for it (Linux 6.18: a whole slice). A
// thread that sleeps is charged for nothing, and is woken at once. So for a while after a slow
// yield waits go straight to sleep.
//
// Threads: any.
#pragma once

#include <cstdint>

#include "src/base/atomic.hpp"

namespace weft::rma {

class Yields {
 public:
  static constexpr std::uint64_t kSlowNs = 200'000;
  static constexpr std::uint64_t kPauseNs = 100'000'000;

  [[nodiscard]] bool is_worth(std::uint64_t now_ns) const {
    // relaxed: a stale value costs one more slow yield; the same for the store.
    return now_ns >= AtomicRef(next_ns_).load(std::memory_order_relaxed);
  }

  // One has taken so long.
  void note(std::uint64_t before_ns, std::uint64_t after_ns) {
    if (after_ns - before_ns > kSlowNs) {
      // relaxed: see is_worth
      AtomicRef(next_ns_).store(after_ns + kPauseNs, std::memory_order_relaxed);
    }
  }

 private:
  mutable std::uint64_t next_ns_ = 0;
};

}  // namespace weft::rma
