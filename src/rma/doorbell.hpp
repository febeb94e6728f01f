// By which a PE that has waited long, and so sleeps, is woken by a PE of its node: one at the start of
// each heap's control bytes. Whoever stores a word that others wait for rings; that is one load, and a
// system call only if somebody sleeps.
//
// A bell may be missed: the ringer's store may become visible after the sleeper's last look, and the
// sleeper's announcement after the ringer's. Closing that gap needs a full fence in every store, so
// sleeps are bounded instead. What wakes nobody at all (p, put) is found by the same bound.
//
// Threads: any number of sleepers and ringers.
#pragma once

#include <cstdint>
#include <ctime>

#include <linux/futex.h>
#include <sys/syscall.h>
#include <unistd.h>

#include "src/base/atomic.hpp"
#include "src/base/ids.hpp"

namespace weft::rma {

struct alignas(kCacheLineBytes) Doorbell {
  std::uint32_t sleepers = 0;
  std::uint32_t rings = 0;

  void ring() {
    // relaxed: see above, a miss is bounded.
    if (AtomicRef(sleepers).load(std::memory_order_relaxed) != 0) [[unlikely]] {
      // relaxed: the kernel compares under its own lock.
      AtomicRef(rings).fetch_add(1, std::memory_order_relaxed);
      ::syscall(SYS_futex, &rings, FUTEX_WAKE, INT32_MAX, nullptr, nullptr, 0);
    }
  }

  // Sleeps until a ring, at most `timeout_us`; not at all if `done` holds already.
  template <typename Done>
  void sleep(std::uint32_t timeout_us, Done&& done) {
    // relaxed: a ring after this changes the number that the kernel compares.
    const std::uint32_t before = AtomicRef(rings).load(std::memory_order_relaxed);
    AtomicRef(sleepers).fetch_add(1, std::memory_order_relaxed);  // ordered by the fence
    full_fence();
    if (!done()) {
      const timespec timeout{.tv_sec = 0, .tv_nsec = static_cast<long>(timeout_us) * 1000};
      ::syscall(SYS_futex, &rings, FUTEX_WAIT, before, &timeout, nullptr, 0);
    }
    AtomicRef(sleepers).fetch_sub(1, std::memory_order_relaxed);  // a ring too many does no harm
  }
};

}  // namespace weft::rma
