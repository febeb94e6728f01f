// The program's handlers of signals, kept over calls that load or start a library of the site. Some
// install handlers of their own when they are loaded: libinfinipath, which Debian's libfabric
// links, takes SIGSEGV, SIGBUS, SIGILL, SIGABRT, SIGINT and SIGTERM to print a backtrace and to end
// the process with status 1. A program that saves its state on SIGTERM would no longer do so, and
// one that crashes would leave no core file.
//
// Control path. Dispositions belong to the whole process: what another thread of the program sets
// meanwhile is undone.
#pragma once

#include <array>
#include <csignal>

namespace weft {

class SignalHandlersKept {
 public:
  SignalHandlersKept() {
    for (int number = 1; number < kCount; ++number) {
      ::sigaction(number, nullptr, &own_[number]);
    }
  }

  SignalHandlersKept(const SignalHandlersKept&) = delete;
  SignalHandlersKept& operator=(const SignalHandlersKept&) = delete;

  ~SignalHandlersKept() {
    for (int number = 1; number < kCount; ++number) {
      struct sigaction now{};
      if (::sigaction(number, nullptr, &now) == 0 &&
          now.sa_sigaction != own_[number].sa_sigaction) {
        ::sigaction(number, &own_[number], nullptr);
      }
    }
  }

 private:
  static constexpr int kCount = 32;  // those after it are the program's own, from SIGRTMIN on

  std::array<struct sigaction, kCount> own_{};
};

}  // namespace weft
