#include "src/base/bell.hpp"

#include <cerrno>
#include <climits>
#include <ctime>

#include <linux/futex.h>
#include <sys/syscall.h>
#include <unistd.h>

namespace weft {
namespace {

// Not FUTEX_PRIVATE: the sleeper and who rings are different processes.
long futex(std::uint32_t& word, int operation, std::uint32_t value, const timespec* timeout) {
  return ::syscall(SYS_futex, &word, operation, value, timeout, nullptr, 0);
}

}  // namespace

void wake_sleepers(Bell& bell) noexcept {
  // relaxed: the kernel compares the word under its own lock; a sleeper looks for news itself.
  AtomicRef(bell.rings).fetch_add(1, std::memory_order_relaxed);
  futex(bell.rings, FUTEX_WAKE, INT_MAX, nullptr);
}

void ring(Bell& bell) noexcept {
  full_fence();  // between what was published and the look for sleepers; sleep_at has the other half
  ring_unfenced(bell);
}

bool sleep_at(Bell& bell, std::uint32_t timeout_us, FunctionRef<bool()> has_news) noexcept {
  // relaxed: a ring after this load makes the wait return at once; news before it is seen below.
  const std::uint32_t seen = AtomicRef(bell.rings).load(std::memory_order_relaxed);
  AtomicRef(bell.sleepers).fetch_add(1, std::memory_order_relaxed);  // ordered by the fence below
  full_fence();  // between becoming a sleeper and the look for news; ring has the other half
  bool woken = true;
  if (!has_news()) {
    const timespec timeout{.tv_sec = timeout_us / 1'000'000,
                           .tv_nsec = static_cast<long>(timeout_us % 1'000'000) * 1000};
    woken = futex(bell.rings, FUTEX_WAIT, seen, &timeout) == 0 || errno == EAGAIN;
  }
  // relaxed: a ring too many costs one system call.
  AtomicRef(bell.sleepers).fetch_sub(1, std::memory_order_relaxed);
  return woken;
}

}  // namespace weft
