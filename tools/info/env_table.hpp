// `weft-info --env`: the configuration table with the values of this environment. One thread.
#pragma once

#include <string>

#include "src/base/config.hpp"

namespace weft::info {

// One line for each setting, those that are set marked with '*'. Values are shown as they were
// written, so that the table can be printed although one is wrong; the job's secret is not shown.
[[nodiscard]] std::string env_text(const Lookup& lookup);

// The same as a JSON array of {name, value, set, default, unit, choices, text}.
[[nodiscard]] std::string env_json(const Lookup& lookup);

}  // namespace weft::info
