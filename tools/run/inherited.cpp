#include "tools/run/inherited.hpp"

#include <pthread.h>

#include "src/base/open_files.hpp"

namespace weft::run {

Inherited take_over(const sigset_t& signals) {
  open_standard_streams();
  Inherited inherited;
  ::pthread_sigmask(SIG_BLOCK, &signals, &inherited.signal_mask);
  struct sigaction action{};
  action.sa_handler = SIG_IGN;
  ::sigaction(SIGPIPE, &action, &inherited.on_broken_pipe);
  action.sa_handler = SIG_DFL;
  ::sigaction(SIGCHLD, &action, &inherited.on_child);
  inherited.open_files = raise_open_files();
  return inherited;
}

void give_back(const Inherited& inherited) noexcept {
  ::sigaction(SIGPIPE, &inherited.on_broken_pipe, nullptr);
  ::sigaction(SIGCHLD, &inherited.on_child, nullptr);
  // Lowers it: what is open stays open.
  static_cast<void>(::setrlimit(RLIMIT_NOFILE, &inherited.open_files));
  ::pthread_sigmask(SIG_SETMASK, &inherited.signal_mask, nullptr);
}

}  // namespace weft::run
