#include "src/proxy/proxy_thread.hpp"

#include <algorithm>
#include <chrono>

#include <pthread.h>

#include "src/base/affinity.hpp"
#include "src/base/atomic.hpp"
#include "src/base/clock.hpp"
#include "src/base/error.hpp"
#include "src/base/log.hpp"
#include "src/base/service_thread.hpp"

namespace weft::proxy {

ProxyThread::ProxyThread(Engine& engine,
                         transport::Transport& transport,
                         const ProxyThreadOptions& options)
    : engine_(engine),
      transport_(transport),
      options_(options),
      thread_(start_service_thread([this] { run(); })) {
  ::pthread_setname_np(thread_.native_handle(), "weft-proxy");
  if (!options_.cores.empty()) {
    if (const int error = keep_on_cores(thread_.native_handle(), options_.cores); error != 0) {
      log::warn("the proxy thread cannot be kept on its cores: {}", errno_words(error));
    }
  }
}

ProxyThread::~ProxyThread() {
  // SYNC proxy-stop: pairs with should_stop; what the thread did happens before join returns.
  AtomicRef(stop_).store(1, std::memory_order_release);
  thread_.join();
}

bool ProxyThread::should_stop() const {
  // SYNC proxy-stop: pairs with the destructor.
  return AtomicRef(stop_).load(std::memory_order_acquire) != 0;
}

void ProxyThread::run() {
  if (options_.on_start) {
    options_.on_start();
  }
  std::uint64_t active_ns = now_ns();
  std::uint32_t nap_us = 1;
  while (!should_stop()) {
    const std::uint64_t pass_ns = now_ns();
    note_pass(pass_ns);
    const bool moved = engine_.poll();
    if (transport_.progress() || moved) {
      active_ns = now_ns();
      nap_us = 1;
    } else if (options_.nap_us_max != 0 &&
               pass_ns - active_ns > std::uint64_t{options_.spin_us} * 1000) {
      transport_.wait_for_event(nap_us);
      nap_us = std::min(2 * nap_us, options_.nap_us_max);
    } else {
      cpu_pause();
    }
  }
  note_pass(0);
}

void ProxyThread::note_pass(std::uint64_t begin_ns) const {
  if (options_.pass_begin_ns != nullptr) {
    // relaxed: a number that is only compared with the clock
    AtomicRef(*options_.pass_begin_ns).store(begin_ns, std::memory_order_relaxed);
  }
}

}  // namespace weft::proxy
