// How a PE sleeps until a peer of its node has something for it: a futex in shared memory (futex(2)).
// Whoever publishes rings afterwards, which is one load unless somebody sleeps. Zeroed memory is a
// silent bell.
//
// ring is never missed, and costs a full fence. ring_unfenced may be: the ringer's store may become
// visible after the sleeper's last look, and the sleeper's announcement after the ringer's. It is for
// stores on a fast path, whose sleepers bound their sleep.
//
// Threads: any, of any process that maps the bell.
#pragma once

#include <cstdint>

#include "src/base/atomic.hpp"
#include "src/base/function_ref.hpp"
#include "src/base/ids.hpp"

namespace weft {

struct alignas(kCacheLineBytes) Bell {
  std::uint32_t sleepers = 0;
  std::uint32_t rings = 0;
};

// Wakes who sleeps there.
void wake_sleepers(Bell& bell) noexcept;

// After something was published that a sleeper's `has_news` may see.
inline void ring_unfenced(Bell& bell) noexcept {
  // relaxed: see above, a miss is bounded.
  if (AtomicRef(bell.sleepers).load(std::memory_order_relaxed) != 0) [[unlikely]] {
    wake_sleepers(bell);
  }
}

// The same, and never missed.
void ring(Bell& bell) noexcept;

// Sleeps until the bell rings, at most `timeout_us`, and not at all if has_news() holds. True if not
// the time ended it.
bool sleep_at(Bell& bell, std::uint32_t timeout_us, FunctionRef<bool()> has_news) noexcept;

}  // namespace weft
