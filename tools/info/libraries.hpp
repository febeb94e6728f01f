// What weft-info says of a library that is opened at run time. Pure; any thread.
#pragma once

#include <string>

#include <nlohmann/json_fwd.hpp>

#include "src/base/library_search.hpp"

namespace weft::info {

// One indented line for each file that was refused.
[[nodiscard]] std::string refused_lines(const LibrarySearch& search);

// {"file": "/usr/lib/...", "refused": [{"file": ..., "reason": ...}]}; file is null if none serves.
[[nodiscard]] nlohmann::ordered_json library_json(const LibrarySearch& search);

}  // namespace weft::info
