#include "src/base/bell.hpp"

#include <cerrno>
#include <climits>
#include <ctime>

#include <linux/futex.h>
#include <sys/syscall.h>
#include <unistd.h>

#include "src/base/clock.hpp"

namespace weft {
namespace {

constexpr std::uint64_t kNsPerUs = 1'000;
constexpr std::uint64_t kNsPerS = 1'000'000'000;

// Not FUTEX_PRIVATE: the sleeper and the ringer are different processes.
long futex(std::uint32_t& word,
           int operation,
           std::uint32_t value,
           const timespec* until,
           std::uint32_t groups) {
  return ::syscall(SYS_futex, &word, operation, value, until, nullptr, groups);
}

}  // namespace

void wake_sleepers(Bell& bell, std::uint32_t groups) noexcept {
  // relaxed: the kernel compares the word under its own lock; the sleeper itself checks for events.
  AtomicRef(bell.rings).fetch_add(1, std::memory_order_relaxed);
  futex(bell.rings, FUTEX_WAKE_BITSET, INT_MAX, nullptr, groups);
}

void ring(Bell& bell) noexcept {
  full_fence();  // between the publication and the check for sleepers; sleep_at has the other half
  // relaxed: ordered by the fence.
  if (AtomicRef(bell.sleepers).load(std::memory_order_relaxed) != 0) [[unlikely]] {
    wake_sleepers(bell);
  }
}

std::uint32_t rings_of(const Bell& bell) noexcept {
  // relaxed: a ring after this load makes the sleep return at once; the check sees events before
  // it.
  return AtomicRef(const_cast<std::uint32_t&>(bell.rings)).load(std::memory_order_relaxed);
}

bool sleep_since(Bell& bell,
                 std::uint32_t rings,
                 std::uint32_t groups,
                 std::uint32_t timeout_us) noexcept {
  const std::uint64_t end_ns = now_ns() + timeout_us * kNsPerUs;
  const timespec until{.tv_sec = static_cast<std::time_t>(end_ns / kNsPerS),
                       .tv_nsec = static_cast<long>(end_ns % kNsPerS)};
  return futex(bell.rings, FUTEX_WAIT_BITSET, rings, &until, groups) == 0 || errno == EAGAIN;
}

bool sleep_at(Bell& bell, std::uint32_t timeout_us, FunctionRef<bool()> has_news) noexcept {
  const std::uint32_t rings = rings_of(bell);
  // relaxed: ordered by the fence below.
  AtomicRef(bell.sleepers).fetch_add(1, std::memory_order_relaxed);
  full_fence();  // between becoming a sleeper and the check for events; ring has the other half
  const bool woken = has_news() || sleep_since(bell, rings, kEveryGroup, timeout_us);
  // relaxed: a superfluous ring costs one system call.
  AtomicRef(bell.sleepers).fetch_sub(1, std::memory_order_relaxed);
  return woken;
}

}  // namespace weft
