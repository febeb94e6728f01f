#include <algorithm>
#include <functional>
#include <map>
#include <memory>

#include <CLI/CLI.hpp>
#include <fmt/format.h>
#include <fmt/ranges.h>

#include "src/base/error.hpp"
#include "src/base/rail_policies.hpp"
#include "tools/perf/sizes.hpp"
#include "tools/sim/calibration.hpp"
#include "tools/sim/faults.hpp"
#include "tools/sim/options.hpp"
#include "tools/sim/refuse.hpp"

namespace weft::sim {
namespace {

constexpr std::uint32_t kWindows = 2;
constexpr std::uint32_t kWindowsDrawn = 4;       // where sizes or peers are drawn
constexpr std::uint32_t kWarmUpWithFaults = 20;  // until slow NICs are found

// What is parsed further after CLI11 has taken the words apart.
struct Texts {
  std::string sizes, totals, library = "weft", by = "token";
  std::vector<std::string> policies, slow, failed;
  std::vector<std::uint32_t> sample;
  std::optional<std::uint32_t> pes_per_node, nics, windows, warm_up;
  double start_apart_us = 0;
  bool has_shared_leaves = false;
};

void add_shape(CLI::App& app, Options& options, Texts& texts) {
  Setup& setup = options.question.setup;
  app.add_option("--machine", options.machine,
                 "A machine's name (weft-sim machines lists them) or JSON file")
      ->required();
  app.add_option("--nodes", setup.nodes, "Nodes")->capture_default_str();
  app.add_option("--pes-per-node", texts.pes_per_node, "PEs of a node, instead of the machine's");
  app.add_option("--nics", texts.nics, "NICs of a PE, instead of the machine's");
  app.add_option("--library", texts.library,
                 "weft: its planner; nvshmem: its proxy's rules single, coupled and offset")
      ->capture_default_str();
  app.add_option(
         "--policy", texts.policies,
         fmt::format("Policies, one row each: {}", fmt::join(choice_names(kRailPolicies), ", ")))
      ->delimiter(',');
  app.add_option("--seed", setup.seed, "Of all that is drawn")->capture_default_str();
}

void add_traffic(CLI::App& app, Options& options, Texts& texts) {
  TrafficShape& traffic = options.question.setup.traffic;
  app.add_option("--sizes", texts.sizes,
                 "Bytes to each peer: 64K, 64K:1M (each twice the one "
                 "before) or 64K,1M");
  app.add_option("--totals", texts.totals,
                 "The same, as NVSHMEM counts: what a PE sends to all PEs");
  app.add_option("--window", traffic.steps, "Steps between two quiets")->capture_default_str();
  app.add_option("--count-per-step", traffic.count_per_step, "Messages to a peer in a step")
      ->capture_default_str();
  app.add_flag("--shuffled", traffic.is_shuffled, "Each PE has an order of peers of its own");
  app.add_flag("--alternate-signal", traffic.alternates_signal, "8 bytes after each message");
  app.add_option("--start-apart", texts.start_apart_us,
                 "us that a PE waits at most, drawn, before each window");
  app.add_option("--windows", texts.windows, "Windows that count");
  app.add_option("--warm-up", texts.warm_up, "Windows before them");
  app.add_option("--sample", texts.sample,
                 "FEW,MANY: simulate only the next so many peers of each PE, and extrapolate")
      ->delimiter(',');
}

void add_faults(CLI::App& app, Options& options, Texts& texts) {
  Leaves& leaves = options.question.setup.leaves;
  app.add_option("--slow", texts.slow, "nic0@all:0.5 or n3.g2.nic1:0.5; may be repeated");
  app.add_option("--fail", texts.failed, "n3.g2.nic1@2ms or nic0@all@2ms; may be repeated");
  app.add_option("--leaf", leaves.nodes, "Nodes of a leaf switch")->capture_default_str();
  app.add_option("--oversubscribe", leaves.oversubscription,
                 "What a leaf's NICs carry over what its links to the others carry")
      ->check(CLI::PositiveNumber);
  app.add_flag("--shared-leaf", texts.has_shared_leaves,
               "One leaf for all NICs of its nodes; else rail-optimized, one for each NIC index");
}

void add_tables(CLI::App& app, Options& options) {
  app.add_option("--compare", options.compare,
                 "Table of measurements: its sizes, with columns for the measured time and error");
  auto* calibrate = app.add_option("--calibrate", options.calibrate,
                                   "Table of measurements to fit the machine to");
  app.add_option("--fit", options.fit,
                 fmt::format("With --calibrate: {}", fmt::join(fit_names(), ", ")))
      ->needs(calibrate);
  app.add_option("--write", options.write, "With --calibrate: the fitted machine's file")
      ->needs(calibrate);
  app.add_option("--rows", options.rows, "COLUMN=VALUE: rows of the tables to take");
  app.add_flag("--csv", options.prints_csv, "CSV instead of a table");
}

void add_moe(CLI::App& app, Options& options, Texts& texts) {
  MoeRoutes& moe = options.question.setup.traffic.moe;
  app.add_option("--tokens", moe.tokens, "Tokens of a PE")->capture_default_str();
  app.add_option("--experts", moe.experts, "Experts, evenly over all PEs")->capture_default_str();
  app.add_option("--top-k", moe.top_k, "Experts of a token")->capture_default_str();
  app.add_option("--zipf", moe.zipf, "Popularity of the i-th expert is 1 / i^ZIPF")
      ->check(CLI::Range(0.0, 3.0))
      ->capture_default_str();
  app.add_option("--by", texts.by, "A message for each token, peer or node")->capture_default_str();
}

std::vector<std::uint64_t> parse_sizes(const std::string& text) {
  std::vector<std::uint64_t> sizes;
  const std::size_t colon = text.find(':');
  try {
    if (colon != std::string::npos) {
      perf::SizeRange range;
      range.begin = perf::parse_size(std::string_view(text).substr(0, colon));
      range.end = perf::parse_size(std::string_view(text).substr(colon + 1));
      range.factor = 2;
      if (range.begin == 0 || range.begin > range.end) {
        refuse("sizes {}: they begin above 0 and end no lower than they begin", text);
      }
      const auto all = perf::size_sequence(range);
      return {all.begin(), all.end()};
    }
    for (std::size_t begin = 0; begin <= text.size();) {
      const std::size_t end = std::min(text.find(',', begin), text.size());
      sizes.push_back(perf::parse_size(std::string_view(text).substr(begin, end - begin)));
      begin = end + 1;
    }
  } catch (const std::invalid_argument& error) {
    refuse("{}", error.what());
  }
  if (std::ranges::count(sizes, 0U) > 0) {
    refuse("sizes {}: messages of 0 bytes take no time", text);
  }
  return sizes;
}

Library parse_library(const std::string& text) {
  for (const Library library : {Library::Weft, Library::Nvshmem}) {
    if (text == name_of(library)) {
      return library;
    }
  }
  refuse("--library {}: use weft or nvshmem", text);
}

MoeMessages parse_by(const std::string& text) {
  if (text == "token") {
    return MoeMessages::ByToken;
  }
  if (text == "peer") {
    return MoeMessages::ByPeer;
  }
  if (text == "node") {
    return MoeMessages::ByNode;
  }
  refuse("--by {}: use token, peer or node", text);
}

void finish_policies(Options& options, const Texts& texts) {
  options.policies = texts.policies;
  if (options.policies.empty()) {
    options.policies = {options.question.setup.library == Library::Weft
                            ? std::string(kDefaultRailPolicy)
                            : "offset"};
  }
  for (const std::string& policy : options.policies) {
    if (std::ranges::find(kRailPolicies, policy, &Choice::name) == kRailPolicies.end()) {
      refuse("--policy {}: use {}", policy, fmt::join(choice_names(kRailPolicies), ", "));
    }
  }
}

void finish(Options& options, const Texts& texts) {
  Setup& setup = options.question.setup;
  TrafficShape& traffic = setup.traffic;
  const Machine machine = load_machine(options.machine);
  setup.pes_per_node = texts.pes_per_node.value_or(machine.pes_per_node);
  setup.nics = {texts.nics.value_or(machine.nics_per_pe)};
  setup.library = parse_library(texts.library);
  finish_policies(options, texts);
  if (!texts.sizes.empty() && !texts.totals.empty()) {
    refuse("--sizes and --totals say the same in two ways; leave one out");
  }
  options.sizes_are_totals = !texts.totals.empty();
  const std::string& sizes = options.sizes_are_totals ? texts.totals : texts.sizes;
  if (!sizes.empty()) {
    options.sizes = parse_sizes(sizes);
  } else if (options.compare.empty() && options.calibrate.empty()) {
    options.sizes = {traffic.bytes};
  }
  for (const std::string& text : texts.slow) {
    setup.slow.push_back(parse_slow(text, setup.pes_per_node));
  }
  for (const std::string& text : texts.failed) {
    setup.failed.push_back(parse_failed(text, setup.pes_per_node));
  }
  setup.leaves.is_rail_optimized = !texts.has_shared_leaves;
  traffic.start_apart_ns = texts.start_apart_us * 1e3;
  traffic.moe.messages = parse_by(texts.by);
  const bool is_drawn = traffic.is_pareto || traffic.pattern == Pattern::Random ||
                        traffic.pattern == Pattern::Moe || traffic.start_apart_ns > 0;
  setup.windows = texts.windows.value_or(is_drawn ? kWindowsDrawn : kWindows);
  setup.warm_up = texts.warm_up.value_or(setup.slow.empty() ? 1 : kWarmUpWithFaults);
  if (!texts.sample.empty()) {
    if (texts.sample.size() != 2) {
      refuse("--sample needs two numbers of peers, such as --sample 32,96");
    }
    options.question.sample = Sample{.few = texts.sample[0], .many = texts.sample[1]};
  }
  if (options.policies.size() > 1 && !options.calibrate.empty()) {
    refuse("--calibrate fits one policy; name one with --policy");
  }
}

struct Command {
  const char* name;
  const char* text;
  Pattern pattern;
  bool is_pareto;
};

constexpr std::array kCommands{
    Command{"alltoall", "Each PE sends to all PEs of other nodes, to the next one first",
            Pattern::AllToAll, false},
    Command{"pareto", "The same with sizes of a Pareto law, up to --sizes", Pattern::AllToAll,
            true},
    Command{"incast", "All PEs send to PE 0", Pattern::Incast, false},
    Command{"pairs", "PE i sends to PE i + n/2", Pattern::Pairs, false},
    Command{"random", "In each step to a PE that is drawn", Pattern::Random, false},
    Command{"moe", "Tokens of --sizes bytes to experts that are drawn by a Zipf law", Pattern::Moe,
            false},
    Command{"put_bw", "NVSHMEM's put_bw between two PEs: bandwidths", Pattern::Pairs, false}};

}  // namespace

std::optional<Options> parse_command_line(int argc, char** argv) {
  Options options;
  Texts texts;
  CLI::App app("Weft's rail planner over simulated NICs: times, load balance and limits.",
               "weft-sim");
  app.set_version_flag("--version", "weft-sim " WEFT_VERSION);
  app.require_subcommand(0, 1);
  std::map<CLI::App*, const Command*> commands;
  for (const Command& command : kCommands) {
    CLI::App* const sub = app.add_subcommand(command.name, command.text);
    add_shape(*sub, options, texts);
    add_traffic(*sub, options, texts);
    add_faults(*sub, options, texts);
    add_tables(*sub, options);
    if (command.pattern == Pattern::Moe) {
      add_moe(*sub, options, texts);
    }
    commands[sub] = &command;
  }
  CLI::App* const machines =
      app.add_subcommand("machines", "Lists the machines, or prints the JSON of one");
  machines->add_option("name", options.shown_machine, "A machine");
  try {
    app.parse(argc, argv);
  } catch (const CLI::Success& help) {
    app.exit(help);
    return std::nullopt;
  } catch (const CLI::ParseError& error) {
    refuse("{}; weft-sim {}--help lists the options", error.what(),
           app.get_subcommands().empty() ? "" : app.get_subcommands().front()->get_name() + " ");
  }
  if (app.get_subcommands().empty()) {
    refuse("name a pattern, such as alltoall; weft-sim --help lists them");
  }
  CLI::App* const chosen = app.get_subcommands().front();
  options.lists_machines = chosen == machines;
  if (!options.lists_machines) {
    const Command& command = *commands.at(chosen);
    options.is_put_bw = std::string_view(command.name) == "put_bw";
    options.question.setup.traffic.pattern = command.pattern;
    options.question.setup.traffic.is_pareto = command.is_pareto;
    finish(options, texts);
  }
  return options;
}

}  // namespace weft::sim
