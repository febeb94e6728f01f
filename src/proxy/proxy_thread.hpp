// The thread that drains a PE's GPU command rings. A GPU cannot wake a host thread, so it polls:
// without pause while there is activity, then with naps that grow up to a limit.
//
// Threads: constructed and destroyed by one thread. Meanwhile only this thread uses the engine.
#pragma once

#include <cstdint>
#include <functional>
#include <thread>
#include <vector>

#include "src/proxy/engine.hpp"

namespace weft::proxy {

struct ProxyThreadOptions {
  std::uint32_t spin_us = 200;    // how long to poll after the last activity
  std::uint32_t nap_us_max = 50;  // the longest nap, which the first command after a pause may
                                  // wait; 0: none
  std::vector<int> cores;         // on which it runs; empty: any
  // For a monitor: the thread writes when its current pass began, and 0 at its end. Null: no
  // monitor.
  std::uint64_t* pass_begin_ns = nullptr;
  // Called by the thread before its first pass.
  std::function<void()> on_start;
};

class ProxyThread {
 public:
  // Both outlive this. The transport is advanced in the same loop, even if other threads advance it
  // too.
  ProxyThread(Engine& engine, transport::Transport& transport, const ProxyThreadOptions& options);
  ProxyThread(const ProxyThread&) = delete;
  ProxyThread& operator=(const ProxyThread&) = delete;
  // Stops and joins; takes at most one pass and a nap. Commands still in rings stay there.
  ~ProxyThread();

 private:
  void run();
  void note_pass(std::uint64_t begin_ns) const;
  [[nodiscard]] bool should_stop() const;

  Engine& engine_;
  transport::Transport& transport_;
  ProxyThreadOptions options_;
  mutable std::uint32_t stop_ = 0;
  std::thread thread_;  // last: starts when everything else is constructed
};

}  // namespace weft::proxy
