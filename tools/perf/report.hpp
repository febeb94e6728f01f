// Where results go: tables on stdout, JSON lines on stdout or in a file. Only PE 0 writes; the
// other PEs hold a Report that is silent, so that subcommands need not ask which PE they are.
#pragma once

#include <fstream>
#include <string>
#include <string_view>
#include <vector>

#include <nlohmann/json.hpp>

#include "tools/perf/balance.hpp"
#include "tools/perf/job.hpp"
#include "tools/perf/options.hpp"
#include "tools/perf/table.hpp"

namespace weft::perf {

// The value of a row for JSON, with anything else worth keeping.
struct Measured {
  std::size_t size = 0;
  double value = 0;
  std::string_view unit;
  nlohmann::json more = nlohmann::json::object();
};

// Where a run's results go, and what they say of it.
struct ReportPlan {
  std::string subcommand;
  std::string command_line;
  bool prints_json = false;
  std::string output;
};

class Report {
 public:
  // Opens the file of --output; throws JobError if it cannot.
  Report(const Job& job, const ReportPlan& plan);
  Report(const Job& job, const Options& options);

  void header(std::string_view title, const Columns& columns);
  // A row of the table that `header` began, and the same for JSON.
  void row(const std::vector<std::string>& cells, const Measured& measured);
  void balance(const BalanceReport& report);

 private:
  void table(const std::string& text) const;
  void json(nlohmann::json object, std::string_view kind);

  bool is_writer_;
  bool prints_json_;
  std::ofstream file_;
  Columns columns_;
  std::string title_;
  nlohmann::json common_;  // what every object repeats: who, where, when
};

// uname, processor model, cores, as an object.
[[nodiscard]] nlohmann::json describe_machine();

}  // namespace weft::perf
