// Where PEs show their counters, and what killed ones have left there.
//
// One thread. Changes nothing.
#pragma once

#include <string>
#include <vector>

#include <nlohmann/json_fwd.hpp>

namespace weft::info {

struct CountersReport {
  std::string folder;             // WEFT_COUNTERS_DIR
  std::string trouble;            // why the folder cannot be read; empty if it can
  std::vector<std::string> dead;  // names of this user's pages whose process is gone
};

// `folder` is the setting; "off" for none.
[[nodiscard]] CountersReport read_counters_folder(const std::string& folder);

[[nodiscard]] std::string counters_text(const CountersReport& report);
[[nodiscard]] nlohmann::ordered_json counters_json(const CountersReport& report);

}  // namespace weft::info
