// A thread of the library's own. Signals of the process are for the program's threads: one that the
// program blocks, to wait for it (sigwait(3)), would end the process if a thread of ours took it,
// and handlers expect the program's own stacks.
//
// Any thread may start one.
#pragma once

#include <csignal>
#include <thread>
#include <utility>

#include <pthread.h>

namespace weft {

// While it lives, threads that this one starts block all signals but those of their own faults, and
// a profiler's: a thread begins with the mask of the one that starts it. Also for calls into
// libraries that start threads.
class ServiceSignals {
 public:
  ServiceSignals() {
    sigset_t blocked;
    ::sigfillset(&blocked);
    for (const int number : {SIGSEGV, SIGBUS, SIGFPE, SIGILL, SIGTRAP, SIGSYS, SIGABRT, SIGPROF}) {
      ::sigdelset(&blocked, number);
    }
    ::pthread_sigmask(SIG_BLOCK, &blocked, &own_);
  }

  ServiceSignals(const ServiceSignals&) = delete;
  ServiceSignals& operator=(const ServiceSignals&) = delete;

  ~ServiceSignals() { ::pthread_sigmask(SIG_SETMASK, &own_, nullptr); }

 private:
  sigset_t own_{};
};

// Starts `body` in a thread that takes none of the program's signals.
template <typename Body>
[[nodiscard]] std::thread start_service_thread(Body&& body) {
  const ServiceSignals signals;
  return std::thread(std::forward<Body>(body));
}

}  // namespace weft
