// weft-info: what was found on this machine, which NICs a PE would use and why the others not.
//
// Changes nothing and needs no job. Status 0, or 2 with one line on stderr for bad input.
#include <cstdio>
#include <cstdlib>
#include <exception>
#include <optional>
#include <string>

#include <CLI/CLI.hpp>
#include <fmt/format.h>

#include "src/base/config.hpp"
#include "src/base/error.hpp"
#include "tools/info/env_table.hpp"
#include "tools/info/report.hpp"

namespace weft::info {
namespace {

constexpr int kBadInput = 2;
constexpr int kPeCountMax = 4096;  // of one node

struct Options {
  bool env = false;
  bool markdown = false;
  bool json = false;
  PeQuestion pe;
  std::string topology;
};

void declare(CLI::App& app, Options& options) {
  auto* env = app.add_flag("--env", options.env, "Print the configuration table and its values");
  app.add_flag("--markdown", options.markdown, "With --env: print docs/ENV.md")->needs(env);
  app.add_flag("--json", options.json, "Print JSON");
  app.add_option("--pe", options.pe.index, "The PE of the node whose NICs are chosen, from 0")
      ->check(CLI::Range(0, kPeCountMax - 1));
  app.add_option("--pes", options.pe.count, "How many PEs the node has")
      ->check(CLI::Range(1, kPeCountMax));
  app.add_option(
      "--topology", options.topology,
      "Look at the machine in this hwloc XML file (lstopo machine.xml) instead of this one");
  app.set_version_flag("--version", std::string("weft ") + WEFT_VERSION);
}

void print(const std::string& text) {
  std::fputs(text.c_str(), stdout);
}

void print_env(const Options& options) {
  if (options.markdown) {
    print(settings_markdown());
    return;
  }
  const Lookup lookup = [](std::string_view name) -> std::optional<std::string> {
    const char* value = std::getenv(std::string(name).c_str());  // NOLINT(concurrency-mt-unsafe)
    return value == nullptr ? std::nullopt : std::optional<std::string>(value);
  };
  print(options.json ? env_json(lookup) : env_text(lookup));
  // The table first: the message about a wrong variable points to it.
  static_cast<void>(load_config_from_environment());
}

void print_report(const Options& options) {
  Report report = make_report(load_config_from_environment(), options.pe, options.topology);
  report.version = WEFT_VERSION;
  print(options.json ? report_json(report) : report_text(report));
}

int run(int argc, char** argv) {
  CLI::App app("What Weft finds on this machine, which NICs it would use, and why.", "weft-info");
  Options options;
  declare(app, options);
  try {
    app.parse(argc, argv);
  } catch (const CLI::Success& help) {
    return app.exit(help);
  } catch (const CLI::ParseError& error) {
    fmt::print(stderr, "weft-info: {}; weft-info --help lists the options\n", error.what());
    return kBadInput;
  }
  options.env ? print_env(options) : print_report(options);
  return EXIT_SUCCESS;
}

}  // namespace
}  // namespace weft::info

int main(int argc, char** argv) {
  try {
    return weft::info::run(argc, argv);
  } catch (const std::exception& error) {
    std::fflush(stdout);
    fmt::print(stderr, "weft-info: {}\n", error.what());
    return weft::info::kBadInput;
  }
}
