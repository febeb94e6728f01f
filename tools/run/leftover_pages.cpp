#include "tools/run/leftover_pages.hpp"

#include <algorithm>
#include <cstdlib>
#include <filesystem>
#include <string>

#include "src/base/counters_folder.hpp"

namespace weft::run {
namespace {

constexpr const char* kVariable = "WEFT_COUNTERS_DIR";

// As a PE finds it: in the job's settings, of which the last counts, then in the environment.
std::string folder_of(const Job& job) {
  const auto setting = std::ranges::find(job.environment.rbegin(), job.environment.rend(),
                                         kVariable, &std::pair<std::string, std::string>::first);
  std::string folder;
  if (setting != job.environment.rend()) {
    folder = setting->second;
  } else if (const char* value = std::getenv(kVariable)) {  // NOLINT(concurrency-mt-unsafe)
    folder = value;
  }
  return folder.empty() ? std::string(kDefaultCountersFolder) : folder;
}

}  // namespace

void remove_leftover_pages(const Job& job) {
  const std::string folder = folder_of(job);
  if (folder != kNoCountersFolder) {
    // PEs run in the job's directory, if it has one.
    remove_dead_pages((std::filesystem::path(job.directory) / folder).string());
  }
}

}  // namespace weft::run
