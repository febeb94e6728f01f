// How a PE sleeps until a peer of its node has an event for it: a futex in shared memory
// (futex(2)). A publisher rings afterwards, which costs one load unless a PE sleeps. Zeroed memory
// is a bell without sleepers. Sleepers that wait for single words have a WordBell instead.
//
// No ring is ever missed; a ring costs a full fence.
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

// Groups of sleepers as bits, from which a wake-up selects some (FUTEX_WAIT_BITSET of futex(2)).
inline constexpr std::uint32_t kEveryGroup = UINT32_MAX;

// Wakes the sleepers in any of `groups`.
void wake_sleepers(Bell& bell, std::uint32_t groups = kEveryGroup) noexcept;

// Call after publishing something that a sleeper's `has_news` may see.
void ring(Bell& bell) noexcept;

// Sleeps until the bell rings, at most `timeout_us`; returns at once if has_news() holds. False if
// the timeout ended the sleep.
bool sleep_at(Bell& bell, std::uint32_t timeout_us, FunctionRef<bool()> has_news) noexcept;

// The parts of sleep_at, for bells that know more about their sleepers. First rings_of; then, after
// announcing the sleeper, a full fence and a check for events, the sleep itself, which any ring
// since rings_of ends at once.
[[nodiscard]] std::uint32_t rings_of(const Bell& bell) noexcept;
bool sleep_since(Bell& bell,
                 std::uint32_t rings,
                 std::uint32_t groups,
                 std::uint32_t timeout_us) noexcept;

}  // namespace weft
