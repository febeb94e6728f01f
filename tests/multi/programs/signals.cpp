// A program with signals of its own. It blocks one in its thread to wait for it: no thread of
// Weft's may take it, which would end the process. And what it does about each signal stays as it
// is, whatever libraries Weft loads.
#include <weft/weft.h>

#include <array>
#include <csignal>
#include <cstdio>

#include <unistd.h>

namespace {

using Handlers = std::array<struct sigaction, 32>;

void note(int /*number*/) {}

Handlers handlers() {
  Handlers now{};
  for (int number = 1; number < static_cast<int>(now.size()); ++number) {
    ::sigaction(number, nullptr, &now[number]);
  }
  return now;
}

bool are_equal(const Handlers& before, const Handlers& after) {
  bool are_all = true;
  for (int number = 1; number < static_cast<int>(before.size()); ++number) {
    if (before[number].sa_handler != after[number].sa_handler) {
      std::printf("the handler of signal %d is another one\n", number);
      are_all = false;
    }
  }
  return are_all;
}

}  // namespace

int main() {
  std::signal(SIGTERM, &note);
  std::signal(SIGINT, SIG_IGN);
  const Handlers before = handlers();
  if (weft_init() != WEFT_OK || !are_equal(before, handlers())) {
    return 1;
  }
  sigset_t awaited;
  sigemptyset(&awaited);
  sigaddset(&awaited, SIGUSR1);
  ::pthread_sigmask(SIG_BLOCK, &awaited, nullptr);
  bool is_well = true;
  for (int i = 0; i < 20; ++i) {
    ::kill(::getpid(), SIGUSR1);
    const timespec limit{.tv_sec = 30, .tv_nsec = 0};
    is_well = is_well && ::sigtimedwait(&awaited, nullptr, &limit) == SIGUSR1;
    weft_barrier_all();
  }
  if (weft_pe() == 0) {
    std::puts(is_well ? "signals ok" : "a signal is missing");
  }
  return weft_finalize() == WEFT_OK && is_well ? 0 : 1;
}
