#include "tools/info/doctor/job.hpp"

#include <algorithm>
#include <iostream>
#include <iterator>
#include <memory>

#include "src/base/error.hpp"
#include "src/bootstrap/connect.hpp"
#include "tools/info/report.hpp"

namespace weft::info {
namespace {

using Json = nlohmann::ordered_json;

std::vector<Finding> parse_findings(const std::string& text) {
  std::vector<Finding> findings;
  const Json array = Json::parse(text, nullptr, false);
  for (const Json& one : array.is_array() ? array : Json::array()) {
    if (auto finding = parse_finding(one)) {
      findings.push_back(std::move(*finding));
    }
  }
  return findings;
}

// As many of them as fit.
void write_findings(const std::vector<Finding>& findings, Notice& notice) {
  Json array = Json::array();
  std::string fitting = "[]";
  for (const Finding& finding : findings) {
    array.push_back(finding_json(finding));
    std::string text = array.dump(-1, ' ', false, Json::error_handler_t::replace);
    if (text.size() >= notice.findings.size()) {
      break;
    }
    fitting = std::move(text);
  }
  std::ranges::copy(fitting, notice.findings.begin());
}

}  // namespace

bool is_job(const Config& config) {
  return bootstrap::choose_method(config, environment()) != bootstrap::Method::Single;
}

std::vector<Finding> read_earlier_findings() {
  return parse_findings({std::istreambuf_iterator<char>(std::cin), {}});
}

int check(int status) {
  if (status < 0) {
    throw Error(static_cast<Status>(status), weft_last_error());
  }
  return status;
}

void tell_findings(Notice& notice, const std::vector<Finding>& earlier, const Reporter& reporter) {
  std::vector<Finding> mine = earlier;
  mine.insert(mine.end(), reporter.added().begin(), reporter.added().end());
  std::erase_if(mine, [](const Finding& finding) { return finding.grade < Grade::Note; });
  write_findings(mine, notice);
  check(weft_barrier_all());
  std::size_t well = mine.empty() ? 1 : 0;
  const auto theirs = std::make_unique<Notice>();
  for (int pe = 1; weft_pe() == 0 && pe < weft_pe_count(); ++pe) {
    check(weft_get(theirs.get(), &notice, sizeof(Notice), pe));
    const std::vector<Finding> found = parse_findings(theirs->findings.data());
    well += found.empty() ? 1 : 0;
    for (Finding finding : found) {
      finding.text = fmt::format("PE {} on {}: {}", pe, theirs->host.data(), finding.text);
      reporter.add(finding);
    }
  }
  if (weft_pe() == 0) {
    reporter.ok(fmt::format("{} of {} PEs found nothing to change", well, weft_pe_count()),
                {{"pe_count", weft_pe_count()}, {"well", well}});
  }
  check(weft_barrier_all());
}

}  // namespace weft::info
