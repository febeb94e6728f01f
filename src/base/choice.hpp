// One value of a setting, and its meaning: for error messages, docs/ENV.md and `weft-info --env`.
//
// A list of them replaces `choices` in a Setting (config.hpp).
//
// Threads: any; constant.
#pragma once

#include <span>
#include <string_view>
#include <vector>

namespace weft {

struct Choice {
  std::string_view name;
  std::string_view text;  // one sentence
};

[[nodiscard]] inline std::vector<std::string_view> choice_names(std::span<const Choice> choices) {
  std::vector<std::string_view> names;
  names.reserve(choices.size());
  for (const Choice& choice : choices) {
    names.push_back(choice.name);
  }
  return names;
}

}  // namespace weft
