// loom: the command line.
//
// Threads: one.
#include <cstdio>
#include <exception>
#include <filesystem>
#include <functional>
#include <list>

#include <CLI/CLI.hpp>
#include <fmt/format.h>
#include <unistd.h>

#include "loom/cli/commands.hpp"
#include "loom/src/persona.hpp"
#include "loom/src/topology.hpp"

namespace loom {
namespace {

constexpr const char* kExamples = R"(
Examples:
  loom run --nodes 2 --pes-per-node 4 --nics 4 --gbits 100 --persona efa -- ./program
  loom cut node0/rdmap79s0        loom slow rdmap80s0 0.25        loom heal all
)";

// Where libloom-fi.so lies: beside this program in a build (../lib), or where LOOM_LIBRARY says.
std::string library_folder() {
  namespace fs = std::filesystem;
  const fs::path here = fs::read_symlink("/proc/self/exe").parent_path();
  for (const fs::path& folder : {fs::path(variable("LOOM_LIBRARY").value_or("")), here / "../lib",
                                 here, here / "../lib/loom"}) {
    if (fs::exists(folder / "libloom-fi.so")) {
      return fs::canonical(folder).string();
    }
  }
  throw Error("libloom-fi.so was not found beside this program; set LOOM_LIBRARY to its folder");
}

// Every knob as an option; those that are given are set.
struct KnobOptions {
  std::list<std::pair<const Knob*, std::string>> given;

  void add_to(CLI::App& app) {
    for (const Knob& knob : knobs()) {
      if (knob.field == &Settings::node_count || knob.field == &Settings::nics_per_node) {
        continue;
      }
      auto& entry = given.emplace_back(&knob, "");
      app.add_option("--" + std::string(knob.name), entry.second,
                     fmt::format("{} (default {:g})", knob.text, knob.fallback));
    }
  }

  void apply(Settings& settings) const {
    for (const auto& [knob, text] : given) {
      if (!text.empty()) {
        set(settings, *knob, text, "--" + std::string(knob->name));
      }
    }
  }
};

struct Line {
  CLI::App app{
      "An emulated fabric: runs software for EFA and Slingshot without either. Not a measurement "
      "of either."};
  std::string job;
  std::string nics;
  double number = 0;
  std::uint32_t rank = 0;
  std::uint32_t nodes = 1;
  std::uint32_t pes_per_node = 1;
  std::uint32_t nics_per_pe = 4;
  std::string persona = "loom";
  std::string topology = "none";
  bool keeps_going = false;
  std::vector<std::string> command;
  KnobOptions knob_options;
  std::function<int()> chosen;
};

int run_line(const Line& line) {
  RunOptions options;
  options.settings = settings_from_environment();
  line.knob_options.apply(options.settings);
  options.settings.node_count = line.nodes;
  options.settings.nics_per_node = std::uint64_t{line.nics_per_pe} * line.pes_per_node;
  options.settings.topology = find_topology(line.topology);
  const Persona* persona = find_persona(line.persona);
  options.job = {.name = line.job.empty() ? fmt::format("job{}", ::getpid()) : line.job,
                 .folder = default_folder(),
                 .library = library_folder(),
                 .persona = line.persona,
                 .provider = persona == nullptr ? "" : std::string(persona->provider),
                 .node_count = line.nodes,
                 .pes_per_node = line.pes_per_node,
                 .command = line.command};
  options.keeps_going = line.keeps_going;
  return run(options);
}

void add_run(Line& line) {
  CLI::App& run = *line.app.add_subcommand("run", "Run a program on emulated nodes");
  run.add_option("--nodes", line.nodes, "Nodes (default 1)")->check(CLI::Range(1, 64));
  run.add_option("--pes-per-node", line.pes_per_node, "Processes on each (default 1)")
      ->check(CLI::Range(1, 64));
  run.add_option("--nics", line.nics_per_pe, "NICs for each process (default 4)")
      ->check(CLI::Range(1, 64));
  run.add_option("--persona", line.persona,
                 "Whom the NICs are mistaken for: " + persona_names() + " (default loom)");
  run.add_option(
      "--topology", line.topology,
      "Where the NICs sit, as hwloc and /sys show it: " + topology_names() + " (default none)");
  run.add_option("--job", line.job, "Name of the fabric (default: by process number)");
  run.add_flag("--keep-going", line.keeps_going, "A process that fails does not end the others");
  line.knob_options.add_to(run);
  run.add_option("command", line.command, "The program and its arguments, behind --")->required();
  run.callback([&line] { line.chosen = [&line] { return run_line(line); }; });
}

void add_fault(Line& line,
               const char* name,
               const char* text,
               const char* number,
               std::function<void(Segment&)> act) {
  CLI::App& fault = *line.app.add_subcommand(name, text);
  fault.add_option("nic", line.nics, "node0/NAME, NAME (of every node) or all")->required();
  if (number != nullptr) {
    fault.add_option("value", line.number, number)->required();
  }
  fault.add_option("--job", line.job, "Name of the fabric (default: LOOM_JOB, or the only one)");
  fault.callback([&line, act = std::move(act)] {
    line.chosen = [&line, act] {
      act(find_fabric(line.job));
      return 0;
    };
  });
}

void add_commands(Line& line) {
  add_run(line);
  add_fault(line, "cut", "Nothing leaves or reaches the NIC", nullptr,
            [&](Segment& s) { cut(s, line.nics); });
  add_fault(line, "heal", "Undo everything that was done to the NIC", nullptr,
            [&](Segment& s) { heal(s, line.nics); });
  add_fault(line, "slow", "Give the NIC a part of its rate", "Part, 0.001 to 1",
            [&](Segment& s) { slow(s, line.nics, line.number); });
  add_fault(line, "error", "Let a part of the NIC's operations fail", "Part, 0 to 1",
            [&](Segment& s) { add_errors(s, line.nics, line.number); });
  add_fault(line, "delay", "Add to the NIC's latency", "us",
            [&](Segment& s) { delay(s, line.nics, line.number); });
  CLI::App& stalled =
      *line.app.add_subcommand("stall", "Stop the NICs' work for a process for a while");
  stalled.add_option("rank", line.rank, "Its rank")->required();
  stalled.add_option("seconds", line.number, "For how long")->required();
  stalled.add_option("--job", line.job, "Name of the fabric (default: LOOM_JOB, or the only one)");
  stalled.callback([&line] {
    line.chosen = [&line] {
      stall(find_fabric(line.job), line.rank, line.number);
      return 0;
    };
  });
  CLI::App& shown =
      *line.app.add_subcommand("show", "NICs, their state and what they have carried");
  shown.add_option("--job", line.job, "Name of the fabric (default: LOOM_JOB, or the only one)");
  shown.callback([&line] {
    line.chosen = [&line] {
      show(find_fabric(line.job));
      return 0;
    };
  });
}

int main_of(int argc, char** argv) {
  Line line;
  line.app.set_version_flag("--version", "loom " LOOM_VERSION);
  // More than one is refused here, none below: CLI11 would not say which option it does not know.
  line.app.require_subcommand(0, 1);
  line.app.footer(kExamples);
  add_commands(line);
  try {
    line.app.parse(argc, argv);
    if (!line.chosen) {
      throw Error("no command is named; loom --help lists them");
    }
    return line.chosen();
  } catch (const CLI::Success& success) {
    return line.app.exit(success);
  } catch (const CLI::ParseError& error) {
    fmt::print(
        stderr,
        "loom: {} (loom --help lists the commands, loom COMMAND --help the options of one)\n",
        error.what());
    return 2;
  } catch (const std::exception& error) {
    fmt::print(stderr, "loom: {}\n", error.what());
    return 2;
  }
}

}  // namespace
}  // namespace loom

int main(int argc, char** argv) {
  return loom::main_of(argc, argv);
}
