// What a step of the doctor found, and how it travels from the process that tried to the one that
// reports: one line of JSON for each thing, written at once, so that nothing is lost when the step
// never ends.
//
// Threads: a Reporter belongs to one at a time.
#pragma once

#include <cstdint>
#include <cstdio>
#include <optional>
#include <string>
#include <string_view>
#include <vector>

#include <nlohmann/json.hpp>

namespace weft::info {

enum class Grade : std::uint8_t {
  Ok,
  Skipped,  // there is nothing to try; the text says why
  Note,     // Weft works, but slower or with less to see; what would change it
  Problem,  // a job would fail, or a NIC carries nothing
};

[[nodiscard]] std::string_view to_string(Grade grade);

struct Finding {
  Grade grade = Grade::Ok;
  std::string text;    // one sentence, no full stop
  std::string remedy;  // the command or setting that changes it; only of notes and problems
  nlohmann::ordered_json figures = nullptr;  // what was measured, with units in the names
};

[[nodiscard]] nlohmann::ordered_json finding_json(const Finding& finding);

// Empty for what is none.
[[nodiscard]] std::optional<Finding> parse_finding(const nlohmann::ordered_json& json);

// One line from a step: one of these.
struct StepLine {
  std::string trying = {};                           // what is begun now
  std::string summary = {};                          // for the verdict: "4 rails over tcp"
  std::optional<std::uint32_t> seat = std::nullopt;  // its number as a PE of a job
  std::optional<Finding> finding = std::nullopt;
};

// Empty for a line that is none (a library that prints).
[[nodiscard]] std::optional<StepLine> parse_step_line(const std::string& line);

class Reporter {
 public:
  explicit Reporter(std::FILE* to) : to_(to) {}

  // Before anything that may never return: "opening rail 0 (nic0)".
  void trying(std::string_view what) const;
  // What the verdict says of a machine that is ready.
  void summary(std::string_view what) const;
  // This process is that PE of a job.
  void seat(std::uint32_t pe) const;
  void add(const Finding& finding) const;

  void ok(std::string text, nlohmann::ordered_json figures = nullptr) const {
    add({Grade::Ok, std::move(text), "", std::move(figures)});
  }

  void skipped(std::string text) const { add({Grade::Skipped, std::move(text), "", nullptr}); }

  void note(std::string text, std::string remedy) const {
    add({Grade::Note, std::move(text), std::move(remedy), nullptr});
  }

  void problem(std::string text, std::string remedy) const {
    add({Grade::Problem, std::move(text), std::move(remedy), nullptr});
  }

  // All so far.
  [[nodiscard]] const std::vector<Finding>& added() const { return added_; }

 private:
  std::FILE* to_;  // null: nobody listens
  mutable std::vector<Finding> added_;
};

}  // namespace weft::info
