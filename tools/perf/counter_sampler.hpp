// Looks at cumulative counters again and again while something is measured: by time from a thread
// of its own (CounterSampler), or at the end of each step from the thread that runs the steps
// (StepSampler).
//
// The main thread calls everything. Between CounterSampler's begin and end its samples are the
// thread's, otherwise the main thread's. Looking never takes more than a twentieth of the time: the
// interval is stretched, and steps that are too short are not looked at.
#pragma once

#include <algorithm>
#include <chrono>
#include <condition_variable>
#include <cstddef>
#include <functional>
#include <mutex>
#include <thread>
#include <vector>

#include "tools/perf/intervals.hpp"

namespace weft::perf {

// The part of the time that looking may take: one in so many.
inline constexpr int kLookShare = 20;

// All counters as they are now, always in the same order.
using CounterLook = std::function<std::vector<NicBytes>()>;

struct SamplePlan {
  std::size_t bytes_max = 0;                 // no more samples beyond
  std::chrono::nanoseconds clock_offset{0};  // this machine's clock is ahead of the job's by this
};

// The samples, and how long it took to take them.
class SampleLog {
 public:
  // Looks a few times to learn how long it takes.
  SampleLog(CounterLook look, const SamplePlan& plan);

  // `begins`: the first sample of a measured part.
  void look(bool begins);

  // Forgets all but the first `count` samples.
  void keep(std::size_t count) { samples_.resize(std::min(count, samples_.size())); }

  [[nodiscard]] const std::vector<CounterSample>& samples() const { return samples_; }

  // By the job's clock.
  [[nodiscard]] std::chrono::nanoseconds now() const;

  // Of the looks when it was made.
  [[nodiscard]] std::chrono::nanoseconds shortest_look() const { return shortest_; }

  // The mean time of a look.
  [[nodiscard]] double look_s() const;

 private:
  CounterLook look_;
  SamplePlan plan_;
  std::vector<CounterSample> samples_;
  std::chrono::nanoseconds shortest_;
  std::chrono::nanoseconds looked_for_{0};
  std::size_t looks_ = 0;
};

// Looks whenever the job's clock comes to a multiple of the interval, so that PEs look at the same
// moments.
class CounterSampler {
 public:
  CounterSampler(CounterLook look, std::chrono::nanoseconds interval, const SamplePlan& plan);
  ~CounterSampler();
  CounterSampler(const CounterSampler&) = delete;
  CounterSampler& operator=(const CounterSampler&) = delete;
  CounterSampler(CounterSampler&&) = delete;
  CounterSampler& operator=(CounterSampler&&) = delete;

  // A measured part begins, ends. The first sample is that of begin.
  void begin();
  void end();

  // Not between begin and end.
  [[nodiscard]] const SampleLog& log() const { return log_; }

  // As chosen, or longer where a look takes long.
  [[nodiscard]] std::chrono::nanoseconds interval() const { return interval_; }

 private:
  void run();
  [[nodiscard]] std::chrono::nanoseconds until_next_look() const;

  SampleLog log_;
  std::chrono::nanoseconds interval_;
  std::mutex mutex_;
  std::condition_variable wake_;
  bool is_running_ = false;
  std::thread thread_;
};

// Whether a look is worth its time is for the caller to ask, since PEs may have to agree.
class StepSampler {
 public:
  StepSampler(CounterLook look, const SamplePlan& plan) : log_(std::move(look), plan) {}

  // A measured part begins, and with it its first step.
  void begin();
  // A step ends, and the next one begins.
  void end_step();
  // The next step begins; what lies before it is not looked at.
  void begin_step();

  // Forgets the steps of this part; the sample of its beginning stays, so that parts keep their
  // numbers.
  void forget_part() { log_.keep(samples_before_ + 1); }

  // Whether the steps of this part have been as long, on average, as 20 looks or longer.
  [[nodiscard]] bool has_long_steps() const;

  [[nodiscard]] const SampleLog& log() const { return log_; }

 private:
  SampleLog log_;
  std::chrono::nanoseconds step_began_{0};
  std::chrono::nanoseconds in_steps_{0};
  std::size_t samples_before_ = 0;
  std::size_t steps_ = 0;
};

}  // namespace weft::perf
