#include "tools/info/env_table.hpp"

#include <fmt/format.h>
#include <fmt/ranges.h>
#include <nlohmann/json.hpp>

namespace weft::info {
namespace {

struct Value {
  std::string text;
  bool set = false;
};

Value value_of(const Setting& setting, const Lookup& lookup) {
  const auto value = lookup(setting.name);
  if (!value || value->empty()) {
    return {std::string(setting.default_value), false};
  }
  // It would end up in bug reports.
  return {setting.name == "WEFT_JOB_SECRET" ? "(set, not shown)" : *value, true};
}

}  // namespace

std::string env_text(const Lookup& lookup) {
  std::string text = fmt::format("  {:<23}{:<17}{:<12}{:<6}{}\n", "variable", "value", "default",
                                 "unit", "what it does");
  for (const Setting& setting : settings()) {
    const Value value = value_of(setting, lookup);
    text += fmt::format(
        "{} {:<22} {:<16} {:<11} {:<5} {}{}\n", value.set ? '*' : ' ', setting.name,
        value.text.empty() ? "-" : value.text,
        setting.default_value.empty() ? "-" : setting.default_value, setting.unit, setting.text,
        choices_of(setting).empty() ? ""
                                    : fmt::format(" [{}]", fmt::join(choices_of(setting), "|")));
  }
  return text + "* set in this environment\n";
}

std::string env_json(const Lookup& lookup) {
  auto rows = nlohmann::ordered_json::array();
  for (const Setting& setting : settings()) {
    const Value value = value_of(setting, lookup);
    auto explained = nlohmann::ordered_json::object();
    for (const Choice& choice : setting.explained) {
      explained[std::string(choice.name)] = choice.text;
    }
    rows.push_back({{"name", setting.name},
                    {"value", value.text},
                    {"set", value.set},
                    {"default", setting.default_value},
                    {"unit", setting.unit},
                    {"choices", fmt::format("{}", fmt::join(choices_of(setting), "|"))},
                    {"text", setting.text},
                    {"explained", explained}});
  }
  return rows.dump(2) + "\n";
}

}  // namespace weft::info
