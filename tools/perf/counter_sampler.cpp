#include "tools/perf/counter_sampler.hpp"

#include <algorithm>
#include <utility>

namespace weft::perf {
namespace {

using std::chrono::nanoseconds;
using SteadyClock = std::chrono::steady_clock;

constexpr int kTrialLooks = 3;

}  // namespace

SampleLog::SampleLog(CounterLook look, const SamplePlan& plan)
    : look_(std::move(look)), plan_(plan), shortest_(nanoseconds::max()) {
  for (int i = 0; i < kTrialLooks; ++i) {
    const SteadyClock::time_point start = SteadyClock::now();
    static_cast<void>(look_());
    shortest_ = std::min<nanoseconds>(shortest_, SteadyClock::now() - start);
  }
}

nanoseconds SampleLog::now() const {
  return SteadyClock::now().time_since_epoch() - plan_.clock_offset;
}

double SampleLog::look_s() const {
  return looks_ == 0
             ? 0
             : std::chrono::duration<double>(looked_for_).count() / static_cast<double>(looks_);
}

void SampleLog::look(bool begins) {
  const std::size_t nic_count = samples_.empty() ? 0 : samples_.front().nics.size();
  const std::size_t sample_bytes = sizeof(CounterSample) + nic_count * sizeof(NicBytes);
  if (samples_.size() * sample_bytes >= plan_.bytes_max) {
    return;
  }
  const nanoseconds start = now();
  samples_.push_back({.time_ns = start.count(), .begins = begins, .nics = look_()});
  looked_for_ += now() - start;
  ++looks_;
}

CounterSampler::CounterSampler(CounterLook look, nanoseconds interval, const SamplePlan& plan)
    : log_(std::move(look), plan),
      interval_(std::max(interval, kLookShare * log_.shortest_look())) {}

CounterSampler::~CounterSampler() {
  if (thread_.joinable()) {
    end();
  }
}

void CounterSampler::begin() {
  log_.look(true);
  is_running_ = true;
  thread_ = std::thread([this] { run(); });
}

void CounterSampler::end() {
  {
    const std::lock_guard lock(mutex_);
    is_running_ = false;
  }
  wake_.notify_one();
  thread_.join();
}

// A look that came late is not made up for: two at once would say nothing of the time between them.
nanoseconds CounterSampler::until_next_look() const {
  const nanoseconds now = log_.now();
  const auto nearest = (now + interval_ / 2) / interval_;
  return (nearest + 1) * interval_ - now;
}

void CounterSampler::run() {
  std::unique_lock lock(mutex_);
  while (is_running_) {
    if (wake_.wait_for(lock, until_next_look(), [this] { return !is_running_; })) {
      break;
    }
    lock.unlock();
    log_.look(false);
    lock.lock();
  }
}

void StepSampler::begin() {
  samples_before_ = log_.samples().size();
  in_steps_ = nanoseconds{0};
  steps_ = 0;
  begin_step();
}

void StepSampler::begin_step() {
  log_.look(true);
  step_began_ = log_.now();
}

void StepSampler::end_step() {
  in_steps_ += log_.now() - step_began_;
  ++steps_;
  log_.look(false);
  step_began_ = log_.now();
}

bool StepSampler::has_long_steps() const {
  return in_steps_ >= kLookShare * log_.shortest_look() * steps_;
}

}  // namespace weft::perf
