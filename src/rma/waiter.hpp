// How a thread waits: it spins, then yields, then sleeps, and after a while logs what it waits for.
// The only place where Weft blocks on the data path, so that no wait hangs silently.
//
// Threads: any number may wait at once; each makes progress while it waits.
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
  std::uint32_t spin_us = 50;        // polls for this long without giving up the core
  std::uint32_t yield_us = 500;      // then yields between polls
  std::uint32_t sleep_us = 200;      // then sleeps between polls, for at most this long
  std::uint32_t report_ms = 10'000;  // then logs what it waits for, and doubles; 0: never
  std::uint64_t timeout_ms = 0;      // then gives up; 0: never
};

// The policy of a PE. If PEs outnumber the cores, it does not spin and sleeps longer, so that
// waiting PEs leave the cores to working ones. Pure function.
[[nodiscard]] WaitPolicy oversubscribed(WaitPolicy policy, std::uint32_t pes, std::uint32_t cores);

class Waiter {
 public:
  // True if a PE of this node is known to be dead (its process has exited).
  using IsDead = std::function<bool(Pe)>;

  // The words that a wait depends on, until `done` returns true. Called only before a sleep.
  using ListWords = FunctionRef<AwaitedWords()>;

  // Called with what was waited for when a wait gives up; may end the process.
  using OnTimeout = std::function<void(const std::string& what)>;

  // Called now and then while a wait lasts, whoever is waited for, and by listen(): to hear of lost
  // PEs. Any thread.
  using Listen = std::function<void()>;

  // `routes` outlives it. PEs of this node ring `bell`; null in tests.
  Waiter(WaitPolicy policy,
         const transport::Routes& routes,
         IsDead is_dead,
         WordBell* bell = nullptr,
         OnTimeout on_timeout = nullptr,
         Listen listen = nullptr);

  // Returns Ok once `done()` holds, PeerLost if one of `awaited` is lost first, or Timeout.
  // `describe` ("waiting for PE 3 in barrier_all") is called only if the wait is long. `done` is
  // called from this thread, often: keep it to a few loads. Stores by the node's PEs to words that
  // `words` does not list do not wake it. A wait is reported once nothing has moved between this PE
  // and `awaited` for WaitPolicy::report_ms; while data moves, only after ten times as long.
  Status wait(FunctionRef<bool()> done,
              FunctionRef<std::string()> describe,
              std::span<const Pe> awaited,
              ListWords words);

  // For a wait whose event may arrive by any path.
  Status wait(FunctionRef<bool()> done,
              FunctionRef<std::string()> describe,
              std::span<const Pe> awaited = {}) {
    return wait(done, describe, awaited, [] { return AwaitedWords{}; });
  }

  // For a transfer to or from `peer` that the transport completes in any case, also if the peer is
  // lost.
  Status wait_for_transfer(FunctionRef<bool()> done, FunctionRef<std::string()> describe, Pe peer);

  // For programs that poll instead of waiting here: hears of lost PEs, at most every few
  // milliseconds. Any thread.
  void listen();

 private:
  enum class Poll : std::uint8_t { Idle, Moved, Done };

  // Moved: something arrived or was posted, but the wait goes on.
  Poll poll(FunctionRef<bool()> done);
  // Polls for this long. True if `done`.
  bool spin(FunctionRef<bool()> done, std::uint64_t start_ns, std::uint32_t us);
  // Polls until nothing has moved for this long, or until the wait should look after itself
  // (Moved).
  Poll spin_while_moving(FunctionRef<bool()> done, std::uint32_t idle_us);
  bool yield(FunctionRef<bool()> done, std::uint64_t start_ns);

  // Whom a wait is for: it ends if one of `alive` is lost; what moves between this PE and `moving`
  // is progress.
  struct Peers {
    std::span<const Pe> alive;
    std::span<const Pe> moving;
  };

  // When a wait is reported; times are since its begin.
  struct Reports {
    std::uint64_t next_ns = 0;
    std::uint64_t sample_ns = 0;  // when to look next whether anything has moved
    std::uint64_t moved = 0;      // what had, then
    std::uint64_t moved_ns = 0;   // when it was last seen to have moved; 0: never
    bool has_sample = false;
  };

  Status wait_for(FunctionRef<bool()> done,
                  FunctionRef<std::string()> describe,
                  const Peers& peers,
                  ListWords words);
  Status sleep(FunctionRef<bool()> done,
               FunctionRef<std::string()> describe,
               const Peers& peers,
               ListWords words,
               std::uint64_t start_ns);
  // True if an event ended the nap. A rail whose queue has no descriptor tells nothing.
  bool nap(FunctionRef<bool()> done, ListWords words, std::uint64_t waited_ns);
  // True if the wait gives up.
  bool report(FunctionRef<std::string()> describe,
              std::span<const Pe> moving,
              std::uint64_t waited_ns,
              Reports& reports);
  void look_for_movement(std::span<const Pe> moving,
                         std::uint64_t waited_ns,
                         Reports& reports) const;
  // The first lost PE among the next few of `awaited`; `position` wraps around.
  Status check_awaited(std::span<const Pe> awaited, std::size_t& position);

  WaitPolicy policy_;
  const transport::Routes& routes_;
  IsDead is_dead_;
  WordBell* bell_;
  OnTimeout on_timeout_;
  Listen listen_;
  std::uint64_t next_listen_ns_ = 0;
};

}  // namespace weft::rma
