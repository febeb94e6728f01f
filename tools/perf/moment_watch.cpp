#include "tools/perf/moment_watch.hpp"

#include <algorithm>

#include "tools/perf/library_intervals.hpp"

namespace weft::perf {
namespace {

using std::chrono::nanoseconds;
using SteadyClock = std::chrono::steady_clock;

// 40 bytes a NIC and sample: an hour of 32 NICs at 10 ms is 460 MB, so what comes later is left
// out.
constexpr std::size_t kDeviceBytesMax = std::size_t{64} << 20U;
// Most of what these hold travels to PE 0.
constexpr std::size_t kLibraryBytesMax = std::size_t{16} << 20U;
// Of one PE's intervals on their way at a time; less than what Job's gather reserves for a PE.
constexpr std::size_t kChunkBytes = std::size_t{32} << 10U;
constexpr int kClockBarriers = 5;
// After so many steps of a part PEs ask whether looks are worth their time.
constexpr std::uint64_t kTrialSteps = 4;
// Beyond them the kernel is asked about one step in so many. Its looks make all PEs wait, which is
// not timed, and the buckets of a lab's rates fill meanwhile: with looks at every step of 14 ms
// NICs carried 1.6 % more.
constexpr std::uint64_t kKernelPeriod = 16;

// How far this machine's clock is ahead of PE 0's: the median over barriers of the times at which
// both left them. PEs of one machine share a clock, and what they differ by is when they were
// woken. Collective.
nanoseconds clock_offset_of(Job& job, nanoseconds interval) {
  std::vector<std::int64_t> differences;
  for (int i = 0; i < kClockBarriers; ++i) {
    Job::barrier();
    const std::int64_t mine = nanoseconds(SteadyClock::now().time_since_epoch()).count();
    const std::uint64_t first = job.sum(job.me() == 0 ? static_cast<std::uint64_t>(mine) : 0);
    differences.push_back(mine - static_cast<std::int64_t>(first));
  }
  const auto median = differences.begin() + kClockBarriers / 2;
  std::ranges::nth_element(differences, median);
  const nanoseconds offset(*median);
  return -interval < offset && offset < interval ? nanoseconds{0} : offset;
}

bool is_first_of_node(const Job& job) {
  for (std::uint32_t pe = 0; pe < job.me(); ++pe) {
    if (job.node_of(pe) == job.node_of(job.me())) {
      return false;
    }
  }
  return true;
}

}  // namespace

MomentWatch::DeviceSamplers::DeviceSamplers(nanoseconds interval, const SamplePlan& plan)
    : by_time([this] { return files_by_time.read(); }, interval, plan),
      by_step([this] { return files_by_step.read(); }, plan) {}

MomentWatch::MomentWatch(Job& job, std::chrono::milliseconds interval)
    : job_(job), interval_(interval), library_(job) {
  const nanoseconds offset = clock_offset_of(job, interval);
  if (is_first_of_node(job)) {
    devices_ = std::make_unique<DeviceSamplers>(
        interval, SamplePlan{.bytes_max = kDeviceBytesMax, .clock_offset = offset});
  }
  const SamplePlan plan{.bytes_max = kLibraryBytesMax, .clock_offset = offset};
  const auto look = [this] { return library_.read(); };
  library_by_step_ = std::make_unique<StepSampler>(look, plan);
  library_by_time_ = std::make_unique<CounterSampler>(look, interval, plan);
  const bool is_stretched = library_by_time_->interval() > interval;
  if (job.sum(is_stretched ? 1 : 0) > 0) {
    library_by_time_.reset();  // the intervals of all PEs have to be the same
  }
}

void MomentWatch::begin(StepEnd step_end) {
  step_end_ = step_end;
  steps_ = 0;
  watches_kernel_ = watches_library_ = true;
  if (devices_) {
    devices_->by_time.begin();
    devices_->by_step.begin();
  }
  if (library_by_time_) {
    library_by_time_->begin();
  }
  library_by_step_->begin();
}

void MomentWatch::end_step() {
  ++steps_;
  if (watches_library_) {
    library_by_step_->end_step();
  }
  if (watches_kernel_) {
    look_at_kernel();
  }
  if (steps_ == kTrialSteps) {
    stop_where_steps_are_short();
  }
}

// Nobody begins the next step while others still look: its bytes would stand in this one.
void MomentWatch::look_at_kernel() {
  const bool ends = steps_ <= kTrialSteps || steps_ % kKernelPeriod == 0;
  const bool begins = !ends && (steps_ + 1) % kKernelPeriod == 0;
  if (devices_ && ends) {
    devices_->by_step.end_step();
  }
  if (devices_ && begins) {
    devices_->by_step.begin_step();
  }
  if (step_end_ == StepEnd::Barrier && (ends || begins)) {
    Job::barrier();
  }
}

void MomentWatch::stop_where_steps_are_short() {
  // How many PEs find a look too long: at the library's counters, at the kernel's.
  constexpr unsigned kKernelShift = 32;
  const bool library = watches_library_ && !library_by_step_->has_long_steps();
  const bool kernel = watches_kernel_ && devices_ && !devices_->by_step.has_long_steps();
  std::uint64_t votes = std::uint64_t{library} | (std::uint64_t{kernel} << kKernelShift);
  if (step_end_ == StepEnd::Barrier) {
    votes = job_.sum(votes);
  }
  if (votes >> kKernelShift != 0) {
    watches_kernel_ = false;
    if (devices_) {
      devices_->by_step.forget_part();
    }
  }
  if (static_cast<std::uint32_t>(votes) != 0) {
    watches_library_ = false;
    library_by_step_->forget_part();
  }
}

void MomentWatch::end() {
  if (devices_) {
    devices_->by_time.end();
  }
  if (library_by_time_) {
    library_by_time_->end();
  }
  if (steps_ < kTrialSteps && steps_ > 0) {
    stop_where_steps_are_short();  // all PEs have had as many, or each is asked alone
  }
}

MomentReport MomentWatch::judge(const BalanceReport& report,
                                const LibraryTotals::Rows& rows) const {
  MomentReport moments;
  judge_kernel(report, moments);
  judge_library(report, rows, moments);
  return moments;
}

// Each node's samples stay with the PE that took them: only what they say travels.
void MomentWatch::judge_kernel(const BalanceReport& report, MomentReport& moments) const {
  const std::vector<NicGroup> groups =
      parse_groups(job_.spread(format_groups(groups_of(report, CountedBy::Kernel))));
  MomentReport mine;
  if (devices_) {
    const CounterSampler& by_time = devices_->by_time;
    mine = judge_moments({.node = job_.node_of(job_.me()),
                          .pe = job_.me(),
                          .names = devices_->files_by_time.names(),
                          .by_time = by_time.log().samples(),
                          .by_step = devices_->by_step.log().samples(),
                          .step_end = step_end_,
                          .interval_s = std::chrono::duration<double>(by_time.interval()).count(),
                          .look_s = by_time.log().look_s()},
                         groups);
  }
  for (const std::string& text : job_.gather(format_moments(mine))) {
    add_moments(text, moments);
  }
}

void MomentWatch::judge_library(const BalanceReport& report,
                                const LibraryTotals::Rows& rows,
                                MomentReport& moments) const {
  const std::vector<NicGroup> groups = groups_of(report, CountedBy::Library);
  if (library_by_time_) {
    LibraryTotals totals(rows, report.nics.size(), StepEnd::Barrier);
    add_up(intervals_by_time(library_by_time_->log().samples(), library_.columns(), interval_),
           totals);
    totals.judge(groups, {.longest_ns = interval_.count()},
                 std::chrono::duration<double>(interval_).count(), moments.by_time.library);
  }
  LibraryTotals totals(rows, report.nics.size(), step_end_);
  add_up(intervals_by_step(library_by_step_->log().samples(), library_.columns()), totals);
  totals.judge(groups, {.by_step = true, .piece_bytes = kStepPieceBytes}, 0,
               moments.by_step.library);
}

void MomentWatch::add_up(const std::vector<LibraryInterval>& mine, LibraryTotals& totals) const {
  std::size_t next = 0;
  while (job_.sum(mine.size() - next) > 0) {
    const std::vector<std::string> texts = job_.gather(format_intervals(mine, kChunkBytes, next));
    for (std::uint32_t pe = 0; pe < texts.size(); ++pe) {
      for (const LibraryInterval& interval : parse_intervals(texts[pe])) {
        totals.add(pe, interval);
      }
    }
  }
}

}  // namespace weft::perf
