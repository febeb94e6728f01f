// The thread that makes progress when no caller does, so that a computing PE still serves its
// peers. One for each transport that needs it. A GPU's command rings have their own thread
// (proxy_thread.hpp), which then makes progress on the rails too.
//
// While callers wait (they poll, and have lower latency), it stands by: it sleeps until a long wait
// has ended, and between short waits checks periodically whether they continue. It takes over
// within 1 ms of the last. When idle it spins briefly and then sleeps on the rails' wait objects.
#pragma once

#include <cstdint>
#include <thread>

#include "src/transport/transport.hpp"

namespace weft::proxy {

class ProgressThread {
 public:
  // `transport` outlives this. `spin_us`: how long to poll after the last event before sleeping.
  ProgressThread(transport::Transport& transport, std::uint32_t spin_us);
  ProgressThread(const ProgressThread&) = delete;
  ProgressThread& operator=(const ProgressThread&) = delete;
  // Stops and joins; takes at most one pass.
  ~ProgressThread();

 private:
  void run();
  [[nodiscard]] bool should_stop() const;

  transport::Transport& transport_;
  std::uint32_t spin_us_;
  mutable std::uint32_t stop_ = 0;
  std::thread thread_;  // last: starts when everything else is constructed
};

}  // namespace weft::proxy
