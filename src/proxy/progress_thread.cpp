#include "src/proxy/progress_thread.hpp"

#include <chrono>

#include <pthread.h>

#include "src/base/atomic.hpp"
#include "src/base/clock.hpp"

namespace weft::proxy {
namespace {

constexpr std::uint32_t kStandbyUs = 250;
// How long it may sleep when nothing happens at all: the transport's own timers need a pass.
constexpr std::uint32_t kSleepUsMax = 50'000;

}  // namespace

ProgressThread::ProgressThread(transport::rails::RailsTransport& rails, std::uint32_t spin_us)
    : rails_(rails), spin_us_(spin_us), thread_([this] { run(); }) {
  ::pthread_setname_np(thread_.native_handle(), "weft-progress");
}

ProgressThread::~ProgressThread() {
  // SYNC progress-stop: pairs with should_stop; what the thread did happens before join returns.
  AtomicRef(stop_).store(1, std::memory_order_release);
  rails_.wake();
  thread_.join();
}

bool ProgressThread::should_stop() const {
  // SYNC progress-stop: pairs with the destructor.
  return AtomicRef(stop_).load(std::memory_order_acquire) != 0;
}

void ProgressThread::run() {
  std::uint64_t active_ns = now_ns();
  while (!should_stop()) {
    if (rails_.callers_are_on_duty()) {
      std::this_thread::sleep_for(std::chrono::microseconds(kStandbyUs));
      continue;
    }
    if (rails_.advance()) {
      active_ns = now_ns();
    } else if (now_ns() - active_ns > std::uint64_t{spin_us_} * 1000) {
      rails_.sleep(kSleepUsMax);
    } else {
      cpu_pause();
    }
  }
}

}  // namespace weft::proxy
