#include "src/proxy/progress_thread.hpp"

#include <algorithm>
#include <chrono>

#include <pthread.h>

#include "src/base/atomic.hpp"
#include "src/base/clock.hpp"
#include "src/base/service_thread.hpp"

namespace weft::proxy {
namespace {

// How long the thread sleeps before it checks again whether callers still poll. If they share its
// core, each check costs two context switches. The interval doubles while callers poll, so it is
// long only after a long phase of communication.
constexpr std::uint32_t kStandbyUs = 250;
constexpr std::uint32_t kStandbyUsMax = 1000;
// The longest sleep if nothing happens at all: the transport's own timers require periodic
// progress.
constexpr std::uint32_t kSleepUsMax = 50'000;

// How long the thread sleeps while callers post and also make progress. If they stop, what they
// posted last waits at most this long.
constexpr std::chrono::microseconds kBetweenPasses{50};

// Waits a little while callers post, so that one pass handles all that has gathered. Meanwhile the
// lock and the data that it guards stay in the callers' caches.
void look_away() {
  constexpr std::uint64_t kLookAwayNs = 5000;
  const std::uint64_t end = now_ns() + kLookAwayNs;
  while (now_ns() < end) {
    cpu_pause();
  }
}

}  // namespace

ProgressThread::ProgressThread(transport::Transport& transport, std::uint32_t spin_us)
    : transport_(transport), spin_us_(spin_us), thread_(start_service_thread([this] { run(); })) {
  ::pthread_setname_np(thread_.native_handle(), "weft-progress");
}

ProgressThread::~ProgressThread() {
  // SYNC progress-stop: pairs with should_stop; what the thread did happens before join returns.
  AtomicRef(stop_).store(1, std::memory_order_release);
  transport_.wake();
  thread_.join();
}

bool ProgressThread::should_stop() const {
  // SYNC progress-stop: pairs with the destructor.
  return AtomicRef(stop_).load(std::memory_order_acquire) != 0;
}

void ProgressThread::run() {
  std::uint64_t active_ns = now_ns();
  std::uint32_t standby_us = kStandbyUs;
  while (!should_stop()) {
    transport_.stand_by();
    const transport::CallerActivity activity = transport_.caller_activity();
    if (activity == transport::CallerActivity::Polls) {
      std::this_thread::sleep_for(std::chrono::microseconds(standby_us));
      standby_us = std::min(2 * standby_us, kStandbyUsMax);
      continue;
    }
    standby_us = kStandbyUs;
    if (activity == transport::CallerActivity::PostsAndPolls) {
      std::this_thread::sleep_for(kBetweenPasses);
    } else if (activity == transport::CallerActivity::Posts && spin_us_ > 0) {
      look_away();
    }
    if (transport_.advance()) {
      active_ns = now_ns();
    } else if (now_ns() - active_ns > std::uint64_t{spin_us_} * 1000) {
      transport_.wait_for_event(kSleepUsMax);
    } else {
      cpu_pause();
    }
  }
}

}  // namespace weft::proxy
