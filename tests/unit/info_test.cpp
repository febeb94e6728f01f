// weft-info: its parts as functions, and the program itself with good and bad input.
#include <gtest/gtest.h>

#include <array>
#include <cstdio>
#include <filesystem>
#include <fstream>
#include <sstream>

#include <fmt/format.h>
#include <gmock/gmock.h>
#include <nlohmann/json.hpp>
#include <sys/wait.h>

#include "src/base/error.hpp"
#include "tests/support/paths.hpp"
#include "tests/unit/topology_fixtures.hpp"
#include "tools/info/env_table.hpp"
#include "tools/info/report.hpp"

namespace weft::info {
namespace {

using testing::AllOf;
using testing::HasSubstr;
using testing::StartsWith;

struct Ended {
  int status = -1;
  std::string output;  // stdout, or stderr alone when asked
};

// Runs `weft-info ARGUMENTS` with no WEFT_ variable but those in `environment`.
Ended run(const std::string& arguments,
          const std::string& environment = "",
          const std::string& redirect = "2>/dev/null") {
  const std::string command = fmt::format("env -i PATH=\"$PATH\" {} '{}/weft-info' {} {}",
                                          environment, WEFT_BINARY_DIR, arguments, redirect);
  Ended ended;
  std::FILE* pipe = ::popen(command.c_str(), "r");  // NOLINT(cert-env33-c): ours
  if (pipe == nullptr) {
    return ended;
  }
  std::array<char, 4096> buffer{};
  while (const std::size_t count = std::fread(buffer.data(), 1, buffer.size(), pipe)) {
    ended.output.append(buffer.data(), count);
  }
  const int status = ::pclose(pipe);
  ended.status = WIFEXITED(status) ? WEXITSTATUS(status) : -1;
  return ended;
}

Ended run_for_errors(const std::string& arguments, const std::string& environment = "") {
  return run(arguments, environment, "2>&1 >/dev/null");
}

std::ptrdiff_t line_count(const std::string& text) {
  return std::ranges::count(text, '\n');
}

Config default_config() {
  return load_config([](std::string_view) { return std::nullopt; });
}

std::string text_of(const std::string& path) {
  std::ostringstream text;
  text << std::ifstream(path).rdbuf();
  return text.str();
}

TEST(Info, EnvMdIsWhatTheTablePrints) {
  EXPECT_EQ(text_of(std::string(WEFT_SOURCE_DIR) + "/docs/ENV.md"), settings_markdown())
      << "run: weft-info --env --markdown > docs/ENV.md";
}

TEST(Info, MarkdownIsPrintedByteForByte) {
  const Ended ended = run("--env --markdown");
  EXPECT_EQ(ended.status, 0);
  EXPECT_EQ(ended.output, settings_markdown());
}

TEST(Info, EnvMarksWhatIsSetAndHidesTheSecret) {
  const Lookup lookup = [](std::string_view name) -> std::optional<std::string> {
    if (name == "WEFT_JOB_SECRET") {
      return "hunter2";
    }
    return name == "WEFT_LOG" ? std::optional<std::string>("debug") : std::nullopt;
  };
  EXPECT_THAT(env_text(lookup),
              AllOf(HasSubstr("* WEFT_LOG"), HasSubstr("debug"), HasSubstr("(set, not shown)"),
                    testing::Not(HasSubstr("hunter2"))));
  EXPECT_THAT(env_json(lookup), testing::Not(HasSubstr("hunter2")));
  EXPECT_EQ(nlohmann::json::parse(env_json(lookup)).size(), settings().size());
}

TEST(Info, ReportOfP5SaysWhichFourNicsAndWhyNotTheOthers) {
  const Report report =
      make_report(default_config(), {1, 8}, topology::fixture_path("p5_48xlarge"));
  EXPECT_EQ(report.choice.chosen, (std::vector<std::size_t>{4, 5, 6, 7}));
  EXPECT_THAT(report_text(report),
              AllOf(HasSubstr("PE 1 of 8"), HasSubstr(": 4 rails"), HasSubstr("rail 3   rdmap99s0"),
                    HasSubstr("not used rdmap79s0        goes to PE 0")));
}

TEST(Info, JsonOfP5HasEveryNicWithItsDistancesAndVerdict) {
  const Report report =
      make_report(default_config(), {7, 8}, topology::fixture_path("p5_48xlarge"));
  const auto json = nlohmann::json::parse(report_json(report));
  EXPECT_EQ(json["machine"]["gpus"].size(), 8U);
  ASSERT_EQ(json["nics"].size(), 32U);
  EXPECT_EQ(json["nics"][31]["distance"]["gpus"][7], "same PCI switch");
  EXPECT_EQ(json["nics"][31]["distance"]["numa_nodes"][0], "other NUMA node");
  EXPECT_EQ(json["nics"][31]["chosen"], true);
  EXPECT_EQ(json["pe"]["rail_count"], 4);
  EXPECT_TRUE(json["limits"].is_null());
}

TEST(Info, LiveReportRunsAndNamesLimitsAndPermissions) {
  const Ended text = run("");
  EXPECT_EQ(text.status, 0);
  EXPECT_THAT(text.output, AllOf(StartsWith("weft "), HasSubstr("locked memory"),
                                 HasSubstr("cross-memory attach"), HasSubstr("PE 0 of 1"),
                                 HasSubstr("libfabric ")));
  const auto json = nlohmann::json::parse(run("--json").output);
  EXPECT_FALSE(json["limits"].is_null());
  EXPECT_TRUE(json["node"]["id"].is_string());
}

// A process each, and loading libfabric takes most of its 0.2 s: the rest is tested in-process.
TEST(Info, BadInputIsOneLineAndStatusTwo) {
  const std::vector<std::pair<std::string, std::string>> cases{
      {"--pe 8 --pes 8", "--pe 8 is not one of --pes 8"},
      {"--pes 0", "--pes"},
      {"--markdown", "--env"},
      {"stray", "stray"},
      {"--topology /nowhere.xml", "/nowhere.xml"}};
  for (const auto& [arguments, words] : cases) {
    const Ended ended = run_for_errors(arguments);
    EXPECT_EQ(ended.status, 2) << arguments;
    EXPECT_EQ(line_count(ended.output), 1) << arguments << ": " << ended.output;
    EXPECT_THAT(ended.output, AllOf(StartsWith("weft-info: "), HasSubstr(words))) << arguments;
  }
}

TEST(Info, WrongVariableIsTheLibrarysErrorInOneLineAndStatusTwo) {
  const Ended ended = run_for_errors("", "WEFT_RAIL_POLICE=single");
  EXPECT_EQ(ended.status, 2);
  EXPECT_EQ(line_count(ended.output), 1) << ended.output;
  EXPECT_THAT(ended.output, HasSubstr("did you mean WEFT_RAIL_POLICY?"));
}

std::string report_error(const Config& config, const std::string& topology_file = "") {
  try {
    static_cast<void>(make_report(config, {}, topology_file));
  } catch (const Error& error) {
    return error.what();
  }
  return "no error";
}

TEST(Info, ReportRefusesFilesThatAreNoMachine) {
  const Config config = default_config();
  for (const char* path : {"/LICENSE", "/tests", "/nowhere.xml"}) {
    EXPECT_THAT(report_error(config, WEFT_SOURCE_DIR + std::string(path)), HasSubstr(path));
  }
}

TEST(Info, ReportRefusesSettingsThatFitNothingHere) {
  Config config = default_config();
  config.nics = "no_such_nic0";
  EXPECT_THAT(report_error(config), HasSubstr("no NIC, address or network 'no_such_nic0' here"));
  config = default_config();
  config.provider = "carrier_pigeon";
  EXPECT_THAT(report_error(config), HasSubstr("WEFT_PROVIDER=carrier_pigeon"));
  config = default_config();
  config.rail_count_max = 33;
  EXPECT_THAT(report_error(config), HasSubstr("use 1 to 32"));
}

TEST(Info, EnvStillListsTheTableWhenAVariableIsWrong) {
  const Ended ended = run("--env", "WEFT_RAIL_POLICE=single");
  EXPECT_EQ(ended.status, 2);
  EXPECT_THAT(ended.output, HasSubstr("WEFT_RAIL_POLICY"));
}

TEST(Info, HelpAndVersionEndWell) {
  EXPECT_EQ(run("--help").status, 0);
  EXPECT_THAT(run("--version").output, StartsWith("weft-info "));
}

class KernelSettings : public testing::Test {
 protected:
  KernelSettings()
      : root_(std::filesystem::temp_directory_path() / fmt::format("weft-sys-{}", ::getpid())) {}

  ~KernelSettings() override { std::filesystem::remove_all(root_); }

  void set(const std::string& name, int value) {
    std::filesystem::create_directories((root_ / name).parent_path());
    std::ofstream(root_ / name) << value << '\n';
  }

  [[nodiscard]] std::string root() const { return root_.string(); }

 private:
  std::filesystem::path root_;
};

TEST_F(KernelSettings, UserNamespacesAreRefusedByAnyOfThreeSwitches) {
  EXPECT_FALSE(user_namespaces(root()).allowed);
  set("user/max_user_namespaces", 1000);
  EXPECT_TRUE(user_namespaces(root()).allowed);
  set("kernel/unprivileged_userns_clone", 0);
  EXPECT_THAT(user_namespaces(root()).detail, HasSubstr("Debian"));
  set("kernel/unprivileged_userns_clone", 1);
  set("kernel/apparmor_restrict_unprivileged_userns", 1);
  EXPECT_THAT(user_namespaces(root()).detail, HasSubstr("Ubuntu"));
}

TEST_F(KernelSettings, CrossMemoryAttachFollowsYama) {
  EXPECT_TRUE(cross_memory_attach(root(), true).allowed);
  EXPECT_FALSE(cross_memory_attach(root(), false).allowed);
  set("kernel/yama/ptrace_scope", 0);
  EXPECT_TRUE(cross_memory_attach(root(), true).allowed);
  set("kernel/yama/ptrace_scope", 1);
  EXPECT_FALSE(cross_memory_attach(root(), true).allowed);
  set("kernel/yama/ptrace_scope", 2);
  EXPECT_FALSE(cross_memory_attach(root(), true).allowed);
}

TEST(Info, RatesAreWrittenAsPeopleSayThem) {
  EXPECT_EQ(rate_text(400'000'000'000), "400 Gbit/s");
  EXPECT_EQ(rate_text(2'500'000'000), "2.5 Gbit/s");
  EXPECT_EQ(rate_text(40'000'000), "40 Mbit/s");
  EXPECT_EQ(rate_text(0), "-");
}

}  // namespace
}  // namespace weft::info
