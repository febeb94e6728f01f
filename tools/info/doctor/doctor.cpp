#include "tools/info/doctor/doctor.hpp"

#include <algorithm>
#include <array>
#include <cstring>
#include <exception>

#include <fmt/format.h>

#include "src/base/clock.hpp"
#include "src/base/error.hpp"
#include "tools/info/doctor/child.hpp"

namespace weft::info {
namespace {

using Json = nlohmann::ordered_json;

// Rails come last: in a job they take the findings of the other steps to PE 0.
constexpr std::array kSteps{
    Step{"memory", "memory: the heap, as the PEs of a node share it", try_memory},
    Step{"attach", "attach: copies between processes by the kernel", try_attach},
    Step{"device", "device: GPUs, their heaps, and peers' heaps", try_device},
    Step{"rails", "rails: a job over the NICs: connections, writes to a neighbour, speed",
         try_rails},
};

ChildPlan plan_for(const Step& step, const DoctorOptions& options, const std::string& input) {
  ChildPlan plan{
      .arguments = {"--doctor", "--doctor-step", std::string(step.name), "--step-limit",
                    std::to_string(options.step_limit_s), "--pe", std::to_string(options.pe.index),
                    "--pes", std::to_string(options.pe.count)},
      .input = input,
      .limit_s = options.step_limit_s,
      .with_info = options.with_info};
  if (options.all_nics) {
    plan.arguments.emplace_back("--all-nics");
  }
  return plan;
}

void add_end(const ChildEnd& end,
             const std::string& trying,
             const DoctorOptions& options,
             StepResult& result) {
  if (end.was_late) {
    result.findings.push_back(
        {Grade::Problem,
         fmt::format("no answer within {} s while {}", options.step_limit_s, trying),
         "look at what that names; --step-limit gives it longer, and dmesg may say more", nullptr});
  } else if (end.signal != 0) {
    result.findings.push_back(
        {Grade::Problem,
         fmt::format("the trial died of signal {} ({}) while {}", end.signal,
                     ::strsignal(end.signal),  // NOLINT(concurrency-mt-unsafe)
                     trying),
         "dmesg may say why; if it was killed for memory, lower WEFT_HEAP_SIZE", nullptr});
  } else if (end.status != 0) {
    result.findings.push_back(
        {Grade::Problem, fmt::format("the trial ended with status {} while {}", end.status, trying),
         "what it printed says why", nullptr});
  }
}

StepResult run_in_child(const Step& step,
                        const DoctorOptions& options,
                        const std::string& input,
                        Diagnosis& diagnosis) {
  StepResult result{.name = std::string(step.name), .title = std::string(step.title)};
  std::string trying = "starting";
  const std::uint64_t start = now_ns();
  const ChildEnd end = run_child(plan_for(step, options, input), [&](const std::string& text) {
    const auto line = parse_step_line(text);
    if (!line) {
      return;
    }
    trying = line->trying.empty() ? trying : line->trying;
    result.summary = line->summary.empty() ? result.summary : line->summary;
    diagnosis.seat = line->seat ? line->seat : diagnosis.seat;
    if (line->finding) {
      result.findings.push_back(*line->finding);
    }
  });
  add_end(end, trying, options, result);
  result.took_s = static_cast<double>(now_ns() - start) / 1e9;
  return result;
}

// For the step of a job that brings together what all PEs found.
std::string earlier_findings(const Diagnosis& diagnosis) {
  Json array = Json::array();
  for (const StepResult& step : diagnosis.steps) {
    for (const Finding& finding : step.findings) {
      if (finding.grade >= Grade::Note) {
        array.push_back(finding_json(finding));
      }
    }
  }
  return array.dump(-1, ' ', false, Json::error_handler_t::replace);
}

std::vector<const Finding*> findings_of(const Diagnosis& diagnosis, Grade grade) {
  std::vector<const Finding*> found;
  for (const StepResult& step : diagnosis.steps) {
    for (const Finding& finding : step.findings) {
      if (finding.grade == grade) {
        found.push_back(&finding);
      }
    }
  }
  return found;
}

std::string numbered(const std::vector<const Finding*>& findings) {
  std::string text;
  for (std::size_t i = 0; i < findings.size(); ++i) {
    text += fmt::format("  {}. {}\n     -> {}\n", i + 1, findings[i]->text, findings[i]->remedy);
  }
  return text;
}

std::string plural(std::size_t count, std::string_view what) {
  return fmt::format("{} {}{}", count, what, count == 1 ? "" : "s");
}

}  // namespace

std::span<const Step> steps() {
  return kSteps;
}

bool Diagnosis::is_ready() const {
  return findings_of(*this, Grade::Problem).empty();
}

bool run_step(const std::string& name, const Config& config, const DoctorOptions& options) {
  const auto* const step = std::ranges::find(kSteps, name, &Step::name);
  if (step == kSteps.end()) {
    return false;
  }
  const Reporter reporter(stdout);
  try {
    step->run(config, options, reporter);
  } catch (const std::exception& error) {
    reporter.problem(error.what(), "what the sentence says");
  }
  return true;
}

Diagnosis diagnose(const DoctorOptions& options,
                   bool is_job,
                   const std::function<void(const StepResult&)>& on_step) {
  Diagnosis diagnosis{.is_job = is_job};
  for (const Step& step : kSteps) {
    diagnosis.steps.push_back(run_in_child(step, options, earlier_findings(diagnosis), diagnosis));
    on_step(diagnosis.steps.back());
  }
  return diagnosis;
}

std::string step_text(const StepResult& step) {
  std::string text = fmt::format("{} ({:.1f} s)\n", step.title, step.took_s);
  for (const Finding& finding : step.findings) {
    text += fmt::format("  {:<8} {}\n", to_string(finding.grade), finding.text);
  }
  return text + "\n";
}

std::string verdict_text(const Diagnosis& diagnosis) {
  const auto problems = findings_of(diagnosis, Grade::Problem);
  const auto notes = findings_of(diagnosis, Grade::Note);
  const std::string_view subject = diagnosis.is_job ? "this job's machines are" : "this machine is";
  std::string text;
  if (problems.empty()) {
    std::vector<std::string> summaries;
    for (const StepResult& step : diagnosis.steps) {
      if (!step.summary.empty()) {
        summaries.push_back(step.summary);
      }
    }
    text = fmt::format("verdict: {} ready: {}\n", subject, fmt::join(summaries, ", "));
  } else {
    text = fmt::format("verdict: {} not ready: {} to solve\n{}", subject,
                       plural(problems.size(), "problem"), numbered(problems));
  }
  if (!notes.empty()) {
    text += fmt::format("{} that Weft works without:\n{}", plural(notes.size(), "thing"),
                        numbered(notes));
  }
  return text;
}

std::string diagnosis_json(const Diagnosis& diagnosis, const std::string& version) {
  Json steps_json = Json::array();
  for (const StepResult& step : diagnosis.steps) {
    Json findings = Json::array();
    for (const Finding& finding : step.findings) {
      findings.push_back(finding_json(finding));
    }
    steps_json.push_back({{"name", step.name},
                          {"took_s", step.took_s},
                          {"summary", step.summary.empty() ? Json(nullptr) : Json(step.summary)},
                          {"findings", findings}});
  }
  const Json json{{"version", version},
                  {"ready", diagnosis.is_ready()},
                  {"problem_count", findings_of(diagnosis, Grade::Problem).size()},
                  {"note_count", findings_of(diagnosis, Grade::Note).size()},
                  {"steps", steps_json}};
  return json.dump(2, ' ', false, Json::error_handler_t::replace) + "\n";
}

}  // namespace weft::info
