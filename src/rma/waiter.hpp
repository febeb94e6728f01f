// How a thread waits: it polls, then yields, then sleeps, and after a while says for whom. The one
// place where Weft waits on the data path, so that nothing hangs in silence.
//
// Threads: any number may wait at once; each drives progress while it does.
#pragma once

#include <cstdint>
#include <functional>
#include <span>
#include <string>

#include "src/base/function_ref.hpp"
#include "src/base/ids.hpp"
#include "src/base/status.hpp"
#include "src/base/word_bell.hpp"
#include "src/transport/routes.hpp"

namespace weft::rma {

struct WaitPolicy {
  std::uint32_t spin_us = 50;        // polls for so long without giving up the core
  std::uint32_t yield_us = 500;      // then yields between polls
  std::uint32_t sleep_us = 200;      // then sleeps between polls, for so long at most
  std::uint32_t report_ms = 10'000;  // then says for whom it waits, and doubles; 0 never
};

// The policy of a PE: no spinning where PEs outnumber the cores, and longer sleeps, so that those
// who wait leave the cores to those who work. Pure.
[[nodiscard]] WaitPolicy oversubscribed(WaitPolicy policy, std::uint32_t pes, std::uint32_t cores);

class Waiter {
 public:
  // True if a PE of this node is known to be dead (its process is gone).
  using IsDead = std::function<bool(Pe)>;

  // The words that a wait is for, as long as `done` finds nothing new. Called only before a sleep.
  using ListWords = FunctionRef<AwaitedWords()>;

  // `routes` outlives it. `bell` is rung by PEs of this node; null in tests.
  Waiter(WaitPolicy policy,
         const transport::Routes& routes,
         IsDead is_dead,
         WordBell* bell = nullptr);

  // Returns Ok once `done()` holds; PeerLost if one of `awaited` is lost first. `describe` ("waiting
  // for PE 3 in barrier_all") is called only if the wait is long. `done` is called from this thread,
  // often: keep it to a few loads. Stores of the node's PEs to other words than `words` lists do not wake it.
  Status wait(FunctionRef<bool()> done,
              FunctionRef<std::string()> describe,
              std::span<const Pe> awaited,
              ListWords words);

  // For what may come in any way.
  Status wait(FunctionRef<bool()> done,
              FunctionRef<std::string()> describe,
              std::span<const Pe> awaited) {
    return wait(done, describe, awaited, [] { return AwaitedWords{}; });
  }

 private:
  bool poll(FunctionRef<bool()> done);
  bool spin(FunctionRef<bool()> done, std::uint64_t start_ns, std::uint32_t us);
  bool yield(FunctionRef<bool()> done, std::uint64_t start_ns);
  Status sleep(FunctionRef<bool()> done,
               FunctionRef<std::string()> describe,
               std::span<const Pe> awaited,
               ListWords words,
               std::uint64_t start_ns);
  // True if traffic ended it.
  bool nap(FunctionRef<bool()> done, ListWords words, std::uint64_t waited_ns);
  // The first lost PE among the next few of `awaited`; `position` goes round.
  Status check_awaited(std::span<const Pe> awaited, std::size_t& position);

  WaitPolicy policy_;
  const transport::Routes& routes_;
  IsDead is_dead_;
  WordBell* bell_;
};

}  // namespace weft::rma
