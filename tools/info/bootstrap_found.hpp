// How a program started like this one would join its job, and by which variables it knows; and
// which libpmix it would open under a launcher with PMIx. Any thread.
#pragma once

#include <optional>
#include <string>
#include <vector>

#include <nlohmann/json_fwd.hpp>

#include "src/base/config.hpp"
#include "src/base/library_search.hpp"

namespace weft::info {

struct BootstrapFound {
  std::string method;  // "tcp", "pmix", "pmi", "slurm", "torchrun", "single"; empty if none fits
  std::vector<std::string> variables;  // those that decided
  std::optional<std::string> pe;       // as the variables write it
  std::optional<std::string> pe_count;
  std::string trouble;  // why it would fail
  LibrarySearch pmix;   // empty where this Weft was built without PMIx
  std::string pmix_version;
};

[[nodiscard]] BootstrapFound find_bootstrap(const Config& config, const Lookup& lookup);

// One line, and others for trouble and for libpmix.
[[nodiscard]] std::string bootstrap_text(const BootstrapFound& found);
[[nodiscard]] nlohmann::ordered_json bootstrap_json(const BootstrapFound& found);

}  // namespace weft::info
