#include "src/plugins/nvshmem/queue.hpp"

#include <algorithm>
#include <utility>

#include "src/base/clock.hpp"
#include "src/base/error.hpp"
#include "src/base/log.hpp"

namespace weft::plugins::nvshmem {
namespace {

constexpr std::uint32_t kIdlePasses = 2000;  // before a thread that waits sleeps
constexpr std::uint32_t kSleepUs = 1000;

// While it lives, its thread makes progress and the progress thread need not.
class WaitScope {
 public:
  explicit WaitScope(transport::Transport& transport) : transport_(transport) {
    transport_.begin_wait();
  }

  WaitScope(const WaitScope&) = delete;
  WaitScope& operator=(const WaitScope&) = delete;

  ~WaitScope() { transport_.end_wait(); }

 private:
  transport::Transport& transport_;
};

// One step of a wait: makes progress, or rests.
class Patience {
 public:
  Patience(transport::Transport& transport, Pe me, WaitRule rule)
      : transport_(transport), me_(me), rule_(rule) {}

  void step(Pe peer) noexcept {
    if (transport_.progress()) {
      idle_ = 0;
      return;
    }
    if (++idle_ < (rule_.may_spin ? kIdlePasses : 1)) {
      cpu_pause();
      return;
    }
    transport_.wait_for_event(kSleepUs);
    report(peer);
  }

 private:
  // Only when nothing has moved for a while, so the clock costs nothing.
  void report(Pe peer) noexcept {
    const std::uint64_t now = now_ns();
    start_ns_ = start_ns_ == 0 ? now : start_ns_;
    const std::uint64_t waited_s = (now - start_ns_) / 1'000'000'000;
    if (rule_.report_s != 0 && waited_s >= std::uint64_t{reports_ + 1} * rule_.report_s) {
      ++reports_;
      log::warn("PE {} has waited {} s for operations of NVSHMEM to PE {} (WEFT_WAIT_REPORT={})",
                me_.value, waited_s, peer.value, rule_.report_s);
    }
  }

  transport::Transport& transport_;
  Pe me_;
  WaitRule rule_;
  std::uint32_t idle_ = 0;
  std::uint32_t reports_ = 0;
  std::uint64_t start_ns_ = 0;
};

}  // namespace

Queue::Queue(transport::rails::RailsTransport& rails, Pe me, std::uint32_t pe_count, WaitRule rule)
    : rails_(rails), me_(me), rule_(rule), counters_(pe_count), is_unflushed_(pe_count, 0) {
  unflushed_.reserve(pe_count);
}

void Queue::send(const transport::Operation& operation) {
  Status status = rails_.post(operation);
  if (status == Status::Again) {  // the peer's queue is full
    const WaitScope scope(rails_);
    Patience patience(rails_, me_, rule_);
    while ((status = rails_.post(operation)) == Status::Again) {
      patience.step(operation.peer);
    }
  }
  if (status != Status::Ok) {
    fail(status, "an operation of NVSHMEM to PE {} was refused: {}", operation.peer.value,
         to_string(status));
  }
}

void Queue::post(transport::Operation operation) {
  const std::uint32_t peer = operation.peer.value;
  operation.counter = &counters_[peer];
  send(operation);
  if (std::exchange(is_unflushed_[peer], 1) == 0) {
    unflushed_.push_back(operation.peer);
  }
}

void Queue::fetch(transport::Operation operation, const OwnMemory& result) {
  if (result.is_device()) {
    operation.result = &fetched_[operation.peer.value].emplace_back(0, result).value;
  } else {
    operation.result = reinterpret_cast<std::uint64_t*>(result.address);
  }
  post(operation);
}

// Nobody looks at a result before quiet has returned, so it may be seen in parts.
void Queue::deliver(Pe peer) {
  const auto fetched = fetched_.find(peer.value);
  if (fetched == fetched_.end() || fetched->second.empty()) {
    return;
  }
  for (const auto& [value, result] : fetched->second) {
    result.words->write(result.address, &value, sizeof(value));
  }
  fetched->second.clear();
}

void Queue::post_and_wait(transport::Operation operation) {
  transport::OperationCounter counter;
  operation.counter = &counter;
  send(operation);
  rails_.flush(operation.peer);
  wait_for(counter, operation.peer);
}

// All peers at once: the host asks for one PE after the other, and each then waits no longer than
// the slowest.
void Queue::flush() {
  for (const Pe peer : unflushed_) {
    is_unflushed_[peer.value] = 0;
    rails_.flush(peer);
  }
  unflushed_.clear();
}

void Queue::quiet(Pe peer) {
  transport::OperationCounter& counter = counters_[peer.value];
  if (is_unflushed_[peer.value] != 0 || !counter.is_idle() || counter.has_failed()) {
    flush();
    wait_for(counter, peer);
  }
  deliver(peer);
}

void Queue::wait_for(transport::OperationCounter& counter, Pe peer) {
  if (!counter.is_idle()) {
    const WaitScope scope(rails_);
    Patience patience(rails_, me_, rule_);
    while (!counter.is_idle()) {
      patience.step(peer);
    }
  }
  if (counter.has_failed()) {
    counter.forget_failure();
    const Status status = rails_.peer_status(peer);
    fail(status == Status::Ok ? Status::Internal : status,
         "operations of NVSHMEM from PE {} to PE {} failed: {}", me_.value, peer.value,
         status == Status::Ok ? "a NIC refused them, as the log says" : to_string(status));
  }
}

bool Queue::drain(std::uint32_t patience_ms) noexcept {
  flush();
  const std::uint64_t deadline_ns = now_ns() + std::uint64_t{patience_ms} * 1'000'000;
  const WaitScope scope(rails_);
  const auto is_open = [](const transport::OperationCounter& counter) {
    return !counter.is_idle();
  };
  while (std::ranges::any_of(counters_, is_open)) {
    if (now_ns() > deadline_ns) {
      return false;
    }
    if (!rails_.progress()) {
      rails_.wait_for_event(kSleepUs);
    }
  }
  return std::ranges::none_of(counters_, &transport::OperationCounter::has_failed);
}

}  // namespace weft::plugins::nvshmem
