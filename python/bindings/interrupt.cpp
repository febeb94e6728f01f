#include "interrupt.hpp"

#include <weft/weft.h>

#include <csignal>
#include <cstdio>
#include <ctime>
#include <mutex>
#include <utility>

#include <pthread.h>
#include <semaphore.h>
#include <unistd.h>

namespace weft::python {
namespace {

constexpr int kStatusOfInterrupt = 128 + SIGINT;

thread_local bool is_main = false;

// What the main thread does: written by it, read by the watcher.
struct MainThread {
  const char* waits_in = nullptr;
  unsigned long calls = 0;
};

std::mutex mutex;
MainThread main_thread;
sem_t interrupted;
struct sigaction earlier{};

void on_interrupt(int number, siginfo_t* information, void* context) {
  if ((earlier.sa_flags & SA_SIGINFO) != 0) {
    earlier.sa_sigaction(number, information, context);
  } else if (earlier.sa_handler != SIG_IGN && earlier.sa_handler != SIG_DFL) {
    earlier.sa_handler(number);
  }
  sem_post(&interrupted);
}

MainThread look() {
  const std::unique_lock lock(mutex);
  return main_thread;
}

void* watch(void*) {
  for (;;) {
    if (sem_wait(&interrupted) != 0) {
      continue;
    }
    const MainThread then = look();
    if (then.waits_in == nullptr) {
      continue;  // Python raises KeyboardInterrupt
    }
    const timespec second{1, 0};
    nanosleep(&second, nullptr);
    const MainThread now = look();
    if (now.waits_in != nullptr && now.calls == then.calls) {
      std::fprintf(stderr, "PE %d: interrupted while it waits in %s; the job ends\n", weft_pe(),
                   now.waits_in);
      weft_global_exit(kStatusOfInterrupt);
    }
  }
  return nullptr;
}

}  // namespace

void watch_interrupts() {
  static bool is_watching = false;
  is_main = true;
  struct sigaction now{};
  if (is_watching || sigaction(SIGINT, nullptr, &now) != 0 || now.sa_handler == SIG_IGN ||
      now.sa_handler == SIG_DFL) {
    return;
  }
  pthread_t thread{};
  if (sem_init(&interrupted, 0, 0) != 0 || pthread_create(&thread, nullptr, &watch, nullptr) != 0) {
    return;
  }
  pthread_detach(thread);
  is_watching = true;
  earlier = now;
  struct sigaction ours{};
  ours.sa_sigaction = &on_interrupt;
  ours.sa_flags = SA_SIGINFO | (now.sa_flags & ~SA_SIGINFO);
  ours.sa_mask = now.sa_mask;
  sigaction(SIGINT, &ours, nullptr);
}

const char* begin_waiting(const char* name) noexcept {
  if (!is_main) {
    return nullptr;
  }
  const std::unique_lock lock(mutex);
  const char* outer = std::exchange(main_thread.waits_in, name);
  ++main_thread.calls;
  return outer;
}

void end_waiting(const char* outer) noexcept {
  if (is_main) {
    const std::unique_lock lock(mutex);
    main_thread.waits_in = outer;
  }
}

}  // namespace weft::python
