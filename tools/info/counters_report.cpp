#include "tools/info/counters_report.hpp"

#include <algorithm>
#include <cerrno>

#include <fcntl.h>
#include <fmt/format.h>
#include <fmt/ranges.h>
#include <nlohmann/json.hpp>

#include "src/base/counters_folder.hpp"
#include "src/base/error.hpp"
#include "src/base/file_descriptor.hpp"

namespace weft::info {
namespace {

constexpr std::size_t kNamedMax = 4;

std::string dead_text(const CountersReport& report) {
  const auto named = std::span(report.dead).first(std::min(report.dead.size(), kNamedMax));
  const std::size_t more = report.dead.size() - named.size();
  return fmt::format(
      "{} left by processes that are gone: {}{}; the next job of this user removes {}, or: cd {} "
      "&& rm {}",
      report.dead.size() == 1 ? "1 page was" : fmt::format("{} pages were", report.dead.size()),
      fmt::join(named, ", "), more == 0 ? "" : fmt::format(" and {} more", more),
      report.dead.size() == 1 ? "it" : "them", report.folder, fmt::join(report.dead, " "));
}

}  // namespace

CountersReport read_counters_folder(const std::string& folder) {
  CountersReport report{.folder = folder};
  if (folder == kNoCountersFolder) {
    return report;
  }
  const FileDescriptor open(::open(folder.c_str(), O_RDONLY | O_DIRECTORY | O_CLOEXEC));
  if (open.is_open()) {
    report.dead = dead_pages(open.get());
    std::ranges::sort(report.dead);
  } else {
    report.trouble = errno_words(errno);
  }
  return report;
}

std::string counters_text(const CountersReport& report) {
  std::string text =
      fmt::format("\ncounter pages\n  {:<20} {} (WEFT_COUNTERS_DIR)\n", "folder", report.folder);
  if (!report.trouble.empty()) {
    text += fmt::format("  {:<20} {}: PEs then run without pages, and weft-top does not see them\n",
                        "cannot be read", report.trouble);
  }
  if (!report.dead.empty()) {
    text += fmt::format("  {:<20} {}\n", "left behind", dead_text(report));
  }
  return text;
}

nlohmann::ordered_json counters_json(const CountersReport& report) {
  return {{"folder", report.folder}, {"trouble", report.trouble}, {"left_behind", report.dead}};
}

}  // namespace weft::info
