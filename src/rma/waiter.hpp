// How a thread waits: it polls, then yields, then sleeps, and after a while says for whom. The one
// place where Weft waits on the data path, so that nothing hangs in silence.
//
// Threads: any number may wait at once; each drives progress while it does.
#pragma once

#include <cstdint>
#include <functional>
#include <span>
#include <string>

#include "src/base/ids.hpp"
#include "src/base/status.hpp"
#include "src/transport/transport.hpp"

namespace weft::rma {

struct WaitPolicy {
  std::uint32_t spin_us = 50;       // polls for so long without giving up the core
  std::uint32_t yield_us = 500;     // then yields between polls
  std::uint32_t sleep_us = 200;     // then sleeps so long at most between polls
  std::uint32_t report_s = 10;      // then says for whom it waits, and doubles; 0 never
};

class Waiter {
 public:
  // True if a PE of this node is known to be dead (its process is gone).
  using IsDead = std::function<bool(Pe)>;

  Waiter(WaitPolicy policy, transport::Transport* rails, IsDead is_dead);

  // Returns Ok once `done()` holds; PeerLost if one of `awaited` is lost first. `describe` is called
  // only if the wait is long. `done` is called from this thread, often: keep it to a few loads.
  Status wait(const std::function<bool()>& done,
              const std::function<std::string()>& describe,
              std::span<const Pe> awaited);

  [[nodiscard]] transport::Transport* rails() const { return rails_; }

 private:
  Status check_awaited(std::span<const Pe> awaited);

  WaitPolicy policy_;
  transport::Transport* rails_;
  IsDead is_dead_;
};

}  // namespace weft::rma
