#include "tools/info/doctor/finding.hpp"

#include <array>

#include <fmt/format.h>

namespace weft::info {
namespace {

using Json = nlohmann::ordered_json;

constexpr std::array kGrades{Grade::Ok, Grade::Skipped, Grade::Note, Grade::Problem};

std::string text_of(const Json& json, const char* name) {
  const auto found = json.find(name);
  return found != json.end() && found->is_string() ? found->get<std::string>() : "";
}

void print_line(std::FILE* to, const Json& json) {
  if (to == nullptr) {
    return;
  }
  fmt::print(to, "{}\n", json.dump(-1, ' ', false, Json::error_handler_t::replace));
  std::fflush(to);
}

}  // namespace

std::string_view to_string(Grade grade) {
  switch (grade) {
    case Grade::Ok:
      return "ok";
    case Grade::Skipped:
      return "skipped";
    case Grade::Note:
      return "note";
    case Grade::Problem:
      return "problem";
  }
  return "?";
}

Json finding_json(const Finding& finding) {
  return {{"grade", to_string(finding.grade)},
          {"text", finding.text},
          {"remedy", finding.remedy.empty() ? Json(nullptr) : Json(finding.remedy)},
          {"figures", finding.figures}};
}

std::optional<Finding> parse_finding(const Json& json) {
  for (const Grade grade : kGrades) {
    if (text_of(json, "grade") == to_string(grade)) {
      return Finding{grade, text_of(json, "text"), text_of(json, "remedy"),
                     json.value("figures", Json(nullptr))};
    }
  }
  return std::nullopt;
}

std::optional<StepLine> parse_step_line(const std::string& line) {
  const Json json = Json::parse(line, nullptr, false);
  if (!json.is_object()) {
    return std::nullopt;
  }
  if (json.contains("trying")) {
    return StepLine{.trying = text_of(json, "trying")};
  }
  if (json.contains("summary")) {
    return StepLine{.summary = text_of(json, "summary")};
  }
  if (json.contains("seat") && json["seat"].is_number_unsigned()) {
    return StepLine{.seat = json["seat"].get<std::uint32_t>()};
  }
  if (auto finding = parse_finding(json)) {
    return StepLine{.finding = std::move(finding)};
  }
  return std::nullopt;
}

void Reporter::trying(std::string_view what) const {
  print_line(to_, {{"trying", what}});
}

void Reporter::summary(std::string_view what) const {
  print_line(to_, {{"summary", what}});
}

void Reporter::seat(std::uint32_t pe) const {
  print_line(to_, {{"seat", pe}});
}

void Reporter::add(const Finding& finding) const {
  added_.push_back(finding);
  print_line(to_, finding_json(finding));
}

}  // namespace weft::info
