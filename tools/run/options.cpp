#include "tools/run/options.hpp"

#include <algorithm>
#include <array>
#include <charconv>
#include <string_view>
#include <system_error>

#include <CLI/CLI.hpp>
#include <fmt/core.h>

#include "src/base/error.hpp"
#include "src/bootstrap/launcher_variables.hpp"

namespace weft::run {
namespace {

constexpr const char* kFooter =
    "A command may follow the options directly, or \"--\".\n"
    "Examples:\n"
    "  weft-run -n 4 -- ./program\n"
    "  weft-run -n 8 --prefix-output --hosts alpha,beta -- ./program --its options\n"
    "  weft-run -n 8 --lab default -- ./program\n"
    "The job ends when a PE fails; weft-run says which and returns its status (128 + signal).";

// What an option for a number of PEs takes; CLI11 says of a wrong one only that it cannot convert
// it.
struct PeNumber {
  std::string_view option;
  std::string_view owner;
  std::uint32_t min;

  std::string operator()(const std::string& text) const {
    std::uint32_t number = 0;
    const auto [end, error] = std::from_chars(text.data(), text.data() + text.size(), number);
    if (error != std::errc{} || end != text.data() + text.size() || number < min ||
        number > bootstrap::kPesMax) {
      fail(Status::InvalidArgument, "{} {}: {} has a whole number of PEs, {} to {}", option,
           text.empty() ? "''" : text, owner, min, bootstrap::kPesMax);
    }
    return "";
  }
};

void add_options(CLI::App& app, Options& options) {
  app.add_option("-n,--pe-count", options.pe_count,
                 "How many PEs to start, also as -np (default: 1; in a Slurm allocation its tasks, "
                 "or, if it was "
                 "made without a number of tasks, one for each node)")
      ->check(PeNumber{"-n", "a job", 1});
  app.add_option(
      "--hosts", options.hosts,
      "Hosts reached by ssh: a,b:4 (b takes at most 4 PEs); default in a Slurm allocation: "
      "its nodes, by srun");
  app.add_option("--hostfile", options.hostfile, "The same from a file, one host a line");
  app.add_option("--lab", options.lab, "Run inside this weft-lab's hosts; 'none' ignores WEFT_LAB");
  app.add_option("--ppn", options.pes_per_host, "PEs on each host (default: an equal share)")
      ->check(PeNumber{"--ppn", "a host", 0});
  app.add_flag("--oversubscribe", options.oversubscribes,
               "Start however many PEs; without it, at most 64 a core of this machine, or 1,024 if "
               "that is more");
  app.add_flag("--prefix-output", options.prefixes_output, "Begin each line of output with [PE]");
  app.add_option("--bind", options.bind, "Bind each PE to its share of: core, numa, none")
      ->check(CLI::IsMember({"auto", "core", "numa", "none"}))
      ->capture_default_str();
  app.add_option("--timeout", options.timeout_s, "End the job after this many seconds");
  app.add_option("--grace", options.grace_s, "Seconds between SIGTERM and SIGKILL at the job's end")
      ->capture_default_str();
  app.add_option("--env", options.environment, "NAME=VALUE, or NAME to pass it on to other hosts")
      ->expected(1)
      ->take_all();
  app.add_option("--node-size", options.node_size,
                 "Treat each run of this many PEs as a node of its own")
      ->check(PeNumber{"--node-size", "a node", 0});
  app.add_option("--on-peer-lost", options.on_peer_lost,
                 "When a PE dies, end the job, or report it to the others, which go on")
      ->check(CLI::IsMember({"end", "report"}))
      ->envname("WEFT_ON_PEER_LOST")
      ->capture_default_str();
  app.add_option("--rendezvous", options.rendezvous,
                 "Where PEs meet: host:port or unix:/path (default: chosen)");
  app.add_option("--ssh-command", options.ssh_command,
                 "Instead of 'ssh -T -o BatchMode=yes ...'; words, quoted as in a shell");
  app.add_option("--agent-path", options.agent_path, "weft-run on the other hosts");
  app.add_flag("--agent", options.is_agent)->group("");
  app.add_flag("--openshmem", options.is_openshmem)->group("");
}

void check(const Options& options) {
  if (options.is_agent) {
    return;
  }
  if (options.command.empty()) {
    fail(Status::InvalidArgument, "no command: weft-run -n {} -- COMMAND [ARGUMENTS]",
         options.pe_count.value_or(1));
  }
  if (!options.hosts.empty() + !options.hostfile.empty() + !options.lab.empty() > 1) {
    fail(Status::InvalidArgument, "use one of --hosts, --hostfile and --lab");
  }
  if (options.timeout_s < 0 || options.grace_s < 0) {
    fail(Status::InvalidArgument, "--timeout and --grace are times in seconds, not below 0");
  }
}

// mpirun's spelling. CLI11 would read it as -n with the number "p".
std::vector<std::string> with_own_spelling(std::vector<std::string> arguments) {
  constexpr std::array<std::string_view, 6> kFlags{
      "--agent", "--help", "-h", "--version", "--oversubscribe", "--prefix-output"};
  for (std::size_t i = 0; i < arguments.size() && arguments[i].starts_with('-'); ++i) {
    if (arguments[i] == "--") {
      break;
    }
    arguments[i] = arguments[i] == "-np" || arguments[i] == "--np" ? "-n" : arguments[i];
    const bool has_value_inside = arguments[i].find('=') != std::string::npos ||
                                  (arguments[i].starts_with("-n") && arguments[i] != "-n");
    const bool is_flag = std::ranges::find(kFlags, arguments[i]) != kFlags.end();
    i += has_value_inside || is_flag ? 0 : 1;
  }
  return arguments;
}

}  // namespace

Options parse_options(const std::vector<std::string>& given, bool& exits) {
  const std::vector<std::string> arguments = with_own_spelling(given);
  Options options;
  CLI::App app("Starts the PEs of a Weft job, here, on other hosts or in a weft-lab.", "weft-run");
  app.footer(kFooter);
  app.prefix_command();
  app.set_version_flag("--version", "weft-run " WEFT_VERSION);
  add_options(app, options);
  // Everything behind the first "--" is the command's; without one, the first word that is no
  // option begins it.
  const auto dashes = std::ranges::find(arguments, "--");
  std::vector<std::string> reversed(std::make_reverse_iterator(dashes), arguments.rend());
  exits = false;
  try {
    app.parse(reversed);                   // CLI11 takes them last first
  } catch (const CLI::Success& success) {  // --help or --version
    app.exit(success);
    exits = true;
    return options;
  } catch (const CLI::ParseError& error) {
    fail(Status::InvalidArgument, "{} (weft-run --help lists the options)", error.what());
  }
  options.command = app.remaining();
  if (!options.command.empty() && options.command.front().starts_with('-')) {
    fail(Status::InvalidArgument, "no option {} (weft-run --help lists the options)",
         options.command.front());
  }
  if (dashes != arguments.end()) {
    options.command.insert(options.command.end(), dashes + (options.command.empty() ? 1 : 0),
                           arguments.end());
  }
  check(options);
  return options;
}

}  // namespace weft::run
