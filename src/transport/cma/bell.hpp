// How a PE sleeps until a peer has something for it: a futex in its mailbox (futex(2)). Whoever
// publishes rings afterwards, which is one load unless somebody sleeps. Zeroed memory is a silent bell.
//
// Threads: any, of any process that maps the bell.
#pragma once

#include <cstdint>

#include "src/base/function_ref.hpp"
#include "src/base/ids.hpp"

namespace weft::transport::cma {

struct alignas(kCacheLineBytes) Bell {
  std::uint32_t sleepers;
  std::uint32_t rings;
};

// After something was published that a sleeper's `has_news` sees.
void ring(Bell& bell) noexcept;

// Sleeps until the bell rings, at most `timeout_us`, and not at all if has_news() holds. True if not
// the time ended it.
bool sleep_at(Bell& bell, std::uint32_t timeout_us, FunctionRef<bool()> has_news) noexcept;

}  // namespace weft::transport::cma
