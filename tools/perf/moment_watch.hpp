// Looks at the kernel's and the library's counters while loops are timed, each few ms and at the
// end of each step, and says at the end how even the NICs were. One PE of each node looks at the
// kernel's, every PE at its own library's. Called by the main thread; the looks by time come from
// threads of CounterSampler.
#pragma once

#include <chrono>
#include <cstdint>
#include <memory>
#include <vector>

#include "tools/perf/balance.hpp"
#include "tools/perf/counter_sampler.hpp"
#include "tools/perf/job.hpp"
#include "tools/perf/kernel_counters.hpp"
#include "tools/perf/library_counters.hpp"
#include "tools/perf/nic_groups.hpp"

namespace weft::perf {

class MomentWatch {
 public:
  // Collective. `interval`: by time.
  MomentWatch(Job& job, std::chrono::milliseconds interval);

  // A measured part begins, a step of it ends, it ends. All parts of a run have steps of one kind;
  // where these end with a barrier, end_step is collective.
  void begin(StepEnd step_end);
  void end_step();
  void end();

  // Collective; `report` and `rows` (each PE's rails among its NICs) are those of PE 0, and so is
  // what it returns. Everything must be quiet.
  [[nodiscard]] MomentReport judge(const BalanceReport& report,
                                   const LibraryTotals::Rows& rows) const;

 private:
  // Two sets of open files: the thread reads its own.
  struct DeviceSamplers {
    DeviceSamplers(std::chrono::nanoseconds interval, const SamplePlan& plan);

    DeviceFiles files_by_time;
    DeviceFiles files_by_step;
    CounterSampler by_time;
    StepSampler by_step;
  };

  void look_at_kernel();
  void stop_where_steps_are_short();
  void judge_kernel(const BalanceReport& report, MomentReport& moments) const;
  void judge_library(const BalanceReport& report,
                     const LibraryTotals::Rows& rows,
                     MomentReport& moments) const;
  // What all PEs say of their intervals, on PE 0.
  void add_up(const std::vector<LibraryInterval>& mine, LibraryTotals& totals) const;

  Job& job_;
  std::chrono::nanoseconds interval_;
  StepEnd step_end_ = StepEnd::Barrier;
  std::uint64_t steps_ = 0;      // of this part
  bool watches_kernel_ = false;  // by step, in this part; of all PEs where steps end with a barrier
  bool watches_library_ = false;  // likewise
  LibraryCounters library_;
  std::unique_ptr<DeviceSamplers> devices_;          // of one PE of each node
  std::unique_ptr<CounterSampler> library_by_time_;  // none if a look takes too long on some PE
  std::unique_ptr<StepSampler> library_by_step_;
};

}  // namespace weft::perf
