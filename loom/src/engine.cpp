// Sleeps on the process's doorbell until something is due. While the client polls all endpoints, it
// naps, and senders need not wake it; a client that is about to sleep on a descriptor does.
//
// Threads: its own, and those that add and remove.
#include "loom/src/engine.hpp"

#include <algorithm>
#include <memory>
#include <mutex>
#include <thread>
#include <utility>
#include <vector>

#include <pthread.h>
#include <sys/prctl.h>
#include <unistd.h>

#include "loom/src/endpoint.hpp"
#include "loom/src/fabric_link.hpp"

namespace loom {
namespace {

constexpr std::uint64_t kPolledNs = 200'000;         // a client that looked so lately polls
constexpr std::uint64_t kWhilePolledNs = 1'000'000;  // the engine's nap meanwhile
constexpr std::uint64_t kIdleNs = 100'000'000;
constexpr unsigned long kTimerSlackNs =
    1000;  // the kernel's 50 us are more than a fabric's latency

class Engine {
 public:
  explicit Engine(const FabricLink& link) : link_(link), thread_([this] { run(); }) {
    ::pthread_setname_np(thread_.native_handle(), "loom");
  }

  Engine(const Engine&) = delete;
  Engine& operator=(const Engine&) = delete;

  ~Engine() {
    stops_.store(true, std::memory_order_relaxed);  // relaxed: the doorbell orders it
    link_.wake_engine();
    thread_.join();
  }

  void add(Endpoint& endpoint) {
    {
      const std::lock_guard guard(lock_);
      endpoints_.push_back(&endpoint);
    }
    link_.wake_engine();
  }

  // Whether it was the last.
  [[nodiscard]] bool remove(Endpoint& endpoint) {
    const std::lock_guard guard(lock_);
    std::erase(endpoints_, &endpoint);
    return endpoints_.empty();
  }

 private:
  struct Look {
    std::uint64_t due_ns = Transmitter::kNever;
    bool all_polled = true;
    bool has_arrivals = false;
  };

  Look look(bool moves) {
    const std::lock_guard guard(lock_);
    Look look;
    const std::uint64_t now = now_ns();
    for (Endpoint* endpoint : endpoints_) {
      if (endpoint->client_looked_since(now - kPolledNs)) {
        continue;
      }
      look.all_polled = false;
      // Before it moves on, which tells the client of what has arrived by then.
      look.has_arrivals = look.has_arrivals || endpoint->has_arrivals();
      if (moves) {
        look.due_ns = std::min(look.due_ns, endpoint->progress(Endpoint::By::Engine));
      }
    }
    return look;
  }

  void run() {
    if (!link_.is_crowded()) {
      ::prctl(PR_SET_TIMERSLACK, kTimerSlackNs);
    }
    ProcessSlot& slot = link_.process_slot();
    while (!stops_.load(std::memory_order_relaxed)) {  // relaxed: the doorbell orders it
      // SYNC doorbell: the number before what is looked for.
      const std::uint32_t seen = slot.doorbell.load(std::memory_order_seq_cst);
      const Look first = look(true);
      const std::uint64_t now = now_ns();
      // SYNC doorbell: that it sleeps before the last look.
      slot.sleeps.store(first.all_polled ? kNaps : kSleeps, std::memory_order_seq_cst);
      const Look last = look(false);
      // What had arrived before, the client has been told of. Where it makes progress itself, it
      // takes that when it runs: an engine that went on looking would keep the core from it.
      const bool has_news =
          last.all_polled != first.all_polled || (last.has_arrivals && !first.has_arrivals);
      if (first.due_ns > now && !has_news) {
        const std::uint64_t longest = first.all_polled ? kWhilePolledNs : kIdleNs;
        futex_wait(slot.doorbell, seen, std::min(longest, first.due_ns - now));
      }
      slot.sleeps.store(0, std::memory_order_relaxed);  // relaxed: a needless wake-up at most
    }
  }

  const FabricLink& link_;
  std::atomic<bool> stops_{false};
  std::mutex lock_;
  std::vector<Endpoint*> endpoints_;
  std::thread thread_;
};

// Never destroyed: a process may end in exit() while its endpoints are open, even from a signal
// handler.
std::mutex engine_lock;
Engine* engine = nullptr;
pid_t engine_owner = 0;

}  // namespace

void add_to_engine(Endpoint& endpoint, const FabricLink& link) {
  const std::lock_guard guard(engine_lock);
  if (engine_owner != ::getpid()) {
    engine = nullptr;  // of the parent before fork(): its thread is not here
    engine_owner = ::getpid();
  }
  if (engine == nullptr) {
    engine = new Engine(link);
  }
  engine->add(endpoint);
}

void remove_from_engine(Endpoint& endpoint) {
  std::unique_ptr<Engine> last;
  const std::lock_guard guard(engine_lock);
  if (engine != nullptr && engine_owner == ::getpid() && engine->remove(endpoint)) {
    last.reset(std::exchange(engine, nullptr));
  }
}

}  // namespace loom
