// The thread that drains a PE's GPU command rings. Nothing can wake a host thread from a GPU, so it
// polls: without pause while anything happens, then in naps that grow up to a bound.
//
// Threads: constructed and destroyed by one thread. The engine is this thread's alone meanwhile.
#pragma once

#include <cstdint>
#include <thread>

#include "src/proxy/engine.hpp"

namespace weft::proxy {

struct ProxyThreadOptions {
  std::uint32_t spin_us = 200;    // how long to poll on after the last thing that happened
  std::uint32_t nap_us_max = 50;  // the longest nap; what the first command after a pause may wait
  // For who watches the thread: it writes when its present pass began, and 0 at its end. Null: nobody does.
  std::uint64_t* pass_begin_ns = nullptr;
};

class ProxyThread {
 public:
  // Both outlive this. The transport is advanced in the same loop, whoever else does it too.
  ProxyThread(Engine& engine, transport::Transport& transport, const ProxyThreadOptions& options);
  ProxyThread(const ProxyThread&) = delete;
  ProxyThread& operator=(const ProxyThread&) = delete;
  // Stops and joins; takes no longer than one pass and a nap. Commands still in rings stay there.
  ~ProxyThread();

 private:
  void run();
  void note_pass(std::uint64_t begin_ns) const;
  [[nodiscard]] bool should_stop() const;

  Engine& engine_;
  transport::Transport& transport_;
  ProxyThreadOptions options_;
  mutable std::uint32_t stop_ = 0;
  std::thread thread_;  // last: starts when all else is there
};

}  // namespace weft::proxy
