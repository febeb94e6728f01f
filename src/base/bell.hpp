// How a PE sleeps until a peer of its node has something for it: a futex in shared memory (futex(2)).
// Whoever publishes rings afterwards, which is one load unless somebody sleeps. Zeroed memory is a
// silent bell. Sleepers that wait for single words have a WordBell instead.
//
// ring is never missed, and costs a full fence.
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

// Groups of sleepers as bits, of which a wake-up names some (FUTEX_WAIT_BITSET of futex(2)).
inline constexpr std::uint32_t kEveryGroup = UINT32_MAX;

// Wakes those who sleep there in one of `groups`.
void wake_sleepers(Bell& bell, std::uint32_t groups = kEveryGroup) noexcept;

// After something was published that a sleeper's `has_news` may see.
void ring(Bell& bell) noexcept;

// Sleeps until the bell rings, at most `timeout_us`, and not at all if has_news() holds. True if not
// the time ended it.
bool sleep_at(Bell& bell, std::uint32_t timeout_us, FunctionRef<bool()> has_news) noexcept;

// The parts of sleep_at, for bells that know more of their sleepers: what rings was; then, announced and
// after a full fence and a look for news, the sleep itself, which a ring since then ends at once.
[[nodiscard]] std::uint32_t rings_of(const Bell& bell) noexcept;
bool sleep_since(Bell& bell,
                 std::uint32_t rings,
                 std::uint32_t groups,
                 std::uint32_t timeout_us) noexcept;

}  // namespace weft
