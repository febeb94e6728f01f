// weft-info --doctor: tries what a PE needs and ends with a verdict: the machine is ready, or what
// to change. One thread.
#pragma once

#include <functional>
#include <optional>
#include <string>
#include <vector>

#include "tools/info/doctor/step.hpp"

namespace weft::info {

struct StepResult {
  std::string name;
  std::string title;
  double took_s = 0;
  std::string summary;  // for the verdict
  std::vector<Finding> findings;
};

struct Diagnosis {
  std::vector<StepResult> steps;
  std::optional<std::uint32_t> seat;  // this process is that PE of a job; PE 0 speaks for all
  bool is_job = false;

  [[nodiscard]] bool is_ready() const;  // no problem; notes may be there
};

// Runs all steps, each in a process of its own; `on_step` sees each as it ends. Throws Error if no
// process can be started.
[[nodiscard]] Diagnosis diagnose(const DoctorOptions& options,
                                 bool is_job,
                                 const std::function<void(const StepResult&)>& on_step);

// In the child: runs the step and reports on standard output. False if there is no such step.
[[nodiscard]] bool run_step(const std::string& name,
                            const Config& config,
                            const DoctorOptions& options);

[[nodiscard]] std::string step_text(const StepResult& step);
[[nodiscard]] std::string verdict_text(const Diagnosis& diagnosis);
[[nodiscard]] std::string diagnosis_json(const Diagnosis& diagnosis, const std::string& version);

}  // namespace weft::info
