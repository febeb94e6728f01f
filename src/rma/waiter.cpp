#include "src/rma/waiter.hpp"

#include <algorithm>
#include <chrono>
#include <thread>
#include <utility>

#include <sched.h>

#include "src/base/atomic.hpp"
#include "src/base/clock.hpp"
#include "src/base/log.hpp"
#include "src/rma/yields.hpp"

namespace weft::rma {
namespace {

constexpr std::uint64_t kNsPerUs = 1'000;
constexpr std::uint64_t kNsPerMs = 1'000'000;
constexpr std::uint32_t kPollsPerClockRead = 64;
// Asking the kernel whether a process is alive costs 2 us. 256 PEs that each check 256 PEs would do
// nothing else. So each call checks a few, and all are covered within a few seconds.
constexpr std::uint64_t kLivenessPeriodNs = 100 * kNsPerMs;
constexpr std::uint64_t kListenPeriodNs = 5 * kNsPerMs;
constexpr std::size_t kLivenessBatch = 16;
// How often a wait looks whether anything moves, and how much later it is reported while something
// does: what moves may not be what is waited for.
constexpr std::uint64_t kSamplesPerReport = 4;
constexpr std::uint64_t kMovingReports = 10;
constexpr std::uint32_t kSleepUsMax = 10'000;
constexpr std::uint32_t kBurstUsMax = 3200;
// However much traffic there is: after so long a wait checks whom it waits for.
constexpr std::uint64_t kMovingNsMax = 10 * kNsPerMs;

// While it exists, this thread makes progress in place of the progress thread.
class Duty {
 public:
  explicit Duty(const transport::Routes& routes) : routes_(routes) { routes_.begin_wait(); }

  Duty(const Duty&) = delete;
  Duty& operator=(const Duty&) = delete;

  ~Duty() { routes_.end_wait(); }

 private:
  const transport::Routes& routes_;
};

}  // namespace

WaitPolicy oversubscribed(WaitPolicy policy, std::uint32_t pes, std::uint32_t cores) {
  if (pes > cores) {
    policy.spin_us = 0;
    policy.sleep_us = std::min(policy.sleep_us * (pes / std::max(cores, 1U)), kSleepUsMax);
  }
  return policy;
}

Waiter::Waiter(WaitPolicy policy,
               const transport::Routes& routes,
               IsDead is_dead,
               WordBell* bell,
               OnTimeout on_timeout,
               Listen listen)
    : policy_(policy),
      routes_(routes),
      is_dead_(std::move(is_dead)),
      bell_(bell),
      on_timeout_(std::move(on_timeout)),
      listen_(std::move(listen)) {}

Status Waiter::wait(FunctionRef<bool()> done,
                    FunctionRef<std::string()> describe,
                    std::span<const Pe> awaited,
                    ListWords words) {
  return wait_for(done, describe, {.alive = awaited, .moving = awaited}, words);
}

Status Waiter::wait_for_transfer(FunctionRef<bool()> done,
                                 FunctionRef<std::string()> describe,
                                 Pe peer) {
  return wait_for(done, describe, {.alive = {}, .moving = {&peer, 1}},
                  [] { return AwaitedWords{}; });
}

Status Waiter::wait_for(FunctionRef<bool()> done,
                        FunctionRef<std::string()> describe,
                        const Peers& peers,
                        ListWords words) {
  if (done()) {
    return Status::Ok;
  }
  const std::uint64_t start_ns = now_ns();
  if (spin(done, start_ns, policy_.spin_us) || yield(done, start_ns)) {
    return Status::Ok;
  }
  return sleep(done, describe, peers, words, start_ns);
}

void Waiter::listen() {
  if (!listen_) {
    return;
  }
  const std::uint64_t now = now_ns();
  // relaxed: only limits how often; two threads may listen at once.
  if (now >= AtomicRef(next_listen_ns_).load(std::memory_order_relaxed)) {
    // relaxed: as above
    AtomicRef(next_listen_ns_).store(now + kListenPeriodNs, std::memory_order_relaxed);
    listen_();
  }
}

Waiter::Poll Waiter::poll(FunctionRef<bool()> done) {
  if (done()) {
    return Poll::Done;
  }
  if (!routes_.progress()) {
    return Poll::Idle;
  }
  return done() ? Poll::Done : Poll::Moved;
}

bool Waiter::spin(FunctionRef<bool()> done, std::uint64_t start_ns, std::uint32_t us) {
  const std::uint64_t end_ns = start_ns + us * kNsPerUs;
  while (us > 0 && now_ns() < end_ns) {
    for (std::uint32_t i = 0; i < kPollsPerClockRead; ++i) {
      if (poll(done) == Poll::Done) {
        return true;
      }
      cpu_pause();
    }
  }
  return false;
}

Waiter::Poll Waiter::spin_while_moving(FunctionRef<bool()> done, std::uint32_t idle_us) {
  const std::uint64_t start_ns = now_ns();
  std::uint64_t now = start_ns;
  std::uint64_t moved_ns = start_ns;
  while (now - moved_ns < idle_us * kNsPerUs) {
    bool has_moved = false;
    for (std::uint32_t i = 0; i < kPollsPerClockRead; ++i) {
      const Poll found = poll(done);
      if (found == Poll::Done) {
        return Poll::Done;
      }
      has_moved = has_moved || found == Poll::Moved;
      cpu_pause();
    }
    now = now_ns();
    moved_ns = has_moved ? now : moved_ns;
    if (now - start_ns >= kMovingNsMax) {
      return Poll::Moved;
    }
  }
  return Poll::Idle;
}

bool Waiter::yield(FunctionRef<bool()> done, std::uint64_t start_ns) {
  // Of all threads and jobs of the process: they share its cores.
  static Yields yields;
  const std::uint64_t end_ns =
      start_ns + (std::uint64_t{policy_.spin_us} + policy_.yield_us) * kNsPerUs;
  std::uint64_t now = now_ns();
  while (now < end_ns && yields.is_worth(now)) {
    if (poll(done) == Poll::Done) {
      return true;
    }
    const std::uint64_t before = now_ns();
    ::sched_yield();
    now = now_ns();
    yields.note(before, now);
  }
  return false;
}

Status Waiter::sleep(FunctionRef<bool()> done,
                     FunctionRef<std::string()> describe,
                     const Peers& peers,
                     ListWords words,
                     std::uint64_t start_ns) {
  const std::uint64_t report_ns = policy_.report_ms * kNsPerMs;
  Reports reports{.next_ns = report_ns, .sample_ns = report_ns / kSamplesPerReport};
  std::uint64_t next_check_ns = start_ns;
  std::size_t position = 0;
  std::uint32_t burst_us = 0;
  bool woken = false;
  const Duty duty(routes_);
  while (true) {
    const Poll found = poll(done);
    if (found == Poll::Done) {
      return Status::Ok;
    }
    // Traffic is bursty, and writes by a peer generate no event here. The more consecutive naps end
    // in traffic, the longer the next sleep is delayed.
    const bool has_traffic = woken || found == Poll::Moved;
    burst_us = has_traffic ? std::max(std::min(2 * burst_us, kBurstUsMax), policy_.spin_us) : 0;
    const Poll last = spin_while_moving(done, burst_us);
    if (last == Poll::Done) {
      return Status::Ok;
    }
    const std::uint64_t now = now_ns();
    if (now >= next_check_ns) {
      listen();
      if (const Status status = check_awaited(peers.alive, position); status != Status::Ok) {
        return done() ? Status::Ok : status;
      }
      next_check_ns = now + kLivenessPeriodNs;
    }
    if (report(describe, peers.moving, now - start_ns, reports)) {
      return Status::Timeout;
    }
    woken = last == Poll::Moved || nap(done, words, now - start_ns);
  }
}

void Waiter::look_for_movement(std::span<const Pe> moving,
                               std::uint64_t waited_ns,
                               Reports& reports) const {
  if (waited_ns < reports.sample_ns) {
    return;
  }
  std::uint64_t moved = 0;
  for (const Pe pe : moving) {
    moved += routes_.moved(pe);
  }
  if (std::exchange(reports.has_sample, true) && moved != reports.moved) {
    reports.moved_ns = waited_ns;
  }
  reports.moved = moved;
  reports.sample_ns = waited_ns + policy_.report_ms * kNsPerMs / kSamplesPerReport;
}

bool Waiter::report(FunctionRef<std::string()> describe,
                    std::span<const Pe> moving,
                    std::uint64_t waited_ns,
                    Reports& reports) {
  if (policy_.timeout_ms > 0 && waited_ns >= policy_.timeout_ms * kNsPerMs) {
    if (on_timeout_) {
      on_timeout_(describe());
    }
    return true;
  }
  if (policy_.report_ms == 0) {
    return false;
  }
  look_for_movement(moving, waited_ns, reports);
  const std::uint64_t report_ns = policy_.report_ms * kNsPerMs;
  const bool moves = reports.moved_ns > 0 && waited_ns - reports.moved_ns < report_ns;
  if (waited_ns >= reports.next_ns && (!moves || waited_ns >= kMovingReports * report_ns)) {
    log::warn("{} for {} s{}; WEFT_WAIT_REPORT sets the time of the first report", describe(),
              waited_ns / (1000 * kNsPerMs), moves ? ", while data moves" : "");
    reports.next_ns = 2 * waited_ns;
  }
  return false;
}

bool Waiter::nap(FunctionRef<bool()> done, ListWords words, std::uint64_t waited_ns) {
  // An eighth of the time waited so far: short waits end quickly, long waits use no CPU.
  const auto us = static_cast<std::uint32_t>(
      std::clamp<std::uint64_t>(waited_ns / kNsPerUs / 8, 1, policy_.sleep_us));
  if (!routes_.empty()) {
    return routes_.wait_for_event(us);
  }
  if (bell_ != nullptr) {
    const AwaitedWords listed = words();
    return sleep_at(*bell_, listed, us, [&] { return done() || words() != listed; });
  }
  std::this_thread::sleep_for(std::chrono::microseconds(us));
  return false;
}

Status Waiter::check_awaited(std::span<const Pe> awaited, std::size_t& position) {
  for (std::size_t i = 0; i < std::min(kLivenessBatch, awaited.size()); ++i) {
    const Pe pe = awaited[position++ % awaited.size()];
    if ((is_dead_ && is_dead_(pe)) || routes_.peer_status(pe) != Status::Ok) {
      return Status::PeerLost;
    }
  }
  return Status::Ok;
}

}  // namespace weft::rma
