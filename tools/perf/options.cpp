#include "tools/perf/options.hpp"

#include <algorithm>
#include <cstdlib>
#include <iterator>
#include <stdexcept>

#include <CLI/CLI.hpp>
#include <fmt/format.h>

#include "tools/perf/nic_rates.hpp"
#include "tools/perf/option_names.hpp"
#include "tools/perf/reduction_values.hpp"

namespace weft::perf {
namespace {

constexpr std::size_t kMegabyte = std::size_t{1} << 20U;
constexpr std::size_t kWindowBytesMax = 64 * kMegabyte;
constexpr std::size_t kHeapReserve = 16 * kMegabyte;
constexpr std::size_t kGatherBytesPerPe = 64U << 10U;
// Fewer than 50 looks say little, and the thread that takes them is not worth its cost.
constexpr double kSampledSecondsMin = 0.5;
constexpr std::uint64_t kSampleIntervalMs = 10;

// ---- Reading the command line --------------------------------------------------------------------

// What is parsed further after CLI11 has taken the words apart.
struct Texts {
  std::string begin, end, type, atomic, reduction, pattern, sizes, direction, warmup, total, json,
      nic_rate;
};

struct Flags {
  CLI::Option* begin = nullptr;
  CLI::Option* end = nullptr;
  CLI::Option* json = nullptr;
};

void add_size_options(CLI::App& app, Options& options, Texts& texts, Flags& flags) {
  flags.begin = app.add_option("-b,--begin", texts.begin, "Smallest size, such as 8 or 64K");
  flags.end = app.add_option("-e,--end", texts.end, "Largest size");
  app.add_option("-f,--factor", options.sizes.factor, "From one size to the next (default 2)");
  app.add_option("-n,--iterations", options.iterations, "Iterations of each size");
  app.add_option("-w,--warmup-iterations", options.warmup_iterations,
                 "Iterations before those that are measured");
  app.add_option("--duration", options.duration_s, "Seconds for each size, instead of -n");
  app.add_option("--repeats", options.repeats,
                 "Of each row of collectives and of exchanges; the median counts (default 5)");
  app.add_option("--window", options.window, "Steps between two quiets");
  app.add_option("--sizes", texts.sizes, "fixed, or pareto:ALPHA:SEED");
}

void add_traffic_options(CLI::App& app, Options& options, Texts& texts) {
  app.add_option("-d,--type", texts.type, "Type of the elements: " + type_names());
  app.add_option("-a,--atomic", texts.atomic, "Atomic: " + atomic_names());
  app.add_option("-o,--reduction", texts.reduction,
                 "Of the subcommand reduction (default sum): " + reduction_names());
  app.add_option("--pattern", texts.pattern, "alltoall, incast, pairs or random");
  app.add_option("--dir", texts.direction, "write or read");
  app.add_option("--count-per-step", options.count_per_step, "Operations to one peer in a step");
  app.add_option("--seed", options.seed, "Of --pattern random and of paged_write's pages");
  app.add_option("--total", texts.total, "Size of paged_write's buffer (default 16M)");
  app.add_option("--interval", options.interval_ms, "ms between two lines of paged_write");
  app.add_flag("--bidir", options.bidirectional, "Both directions at once");
  app.add_flag("--alternate-signal", options.alternates_signal, "After each put one of 8 bytes");
  app.add_flag("--collective", options.collective, "Call weft_alltoall instead of single puts");
  app.add_flag_callback(
      "--aggregate", [&] { options.aggregates = true; },
      "all_get_all and its kin: only windows of operations with one quiet");
  app.add_flag_callback(
      "--no-aggregate", [&] { options.aggregates = false; },
      "Only operations that each wait (default: a row for both)");
  app.add_flag("--verify", options.verifies, "Check every byte that arrives");
}

void add_setting_options(CLI::App& app, Options& options, Texts& texts, Flags& flags) {
  app.add_option("--policy", options.policy, "Sets WEFT_RAIL_POLICY");
  app.add_option("--warmup", texts.warmup, "on or off: sets WEFT_WARMUP");
  flags.json = app.add_option("--json", texts.json,
                              "JSON lines instead of tables; --json=FILE: there, beside tables")
                   ->expected(0, 1);
  app.add_option("--output", options.output, "The same as --json=FILE");
  app.add_option(
      "--nic-rate", texts.nic_rate,
      "What each NIC can carry in each direction, such as 40mbit (default: as the lab or "
      "the kernel says)");
  app.add_option("--interval-ms", options.sample_interval_ms,
                 "ms between two looks at the NICs, for max/mean at each moment; 0: none (default: "
                 "10 where --duration is at least 0.5)");
  app.add_flag(
      "--no-counters", [&](std::int64_t) { options.shows_counters = false; },
      "Leave out the bytes of each NIC");
}

// ---- Meaning ---------------------------------------------------------------------------------------

bool parse_choice(std::string_view option,
                  std::string_view text,
                  std::string_view yes,
                  std::string_view no) {
  if (text != yes && text != no) {
    throw std::invalid_argument(fmt::format("{} {}: use {} or {}", option, text, yes, no));
  }
  return text == yes;
}

void parse_sizes(Options& options, const Texts& texts, const Flags& flags) {
  if (*flags.begin) {
    options.sizes.begin = parse_size(texts.begin);
    options.sizes.end = std::max(options.sizes.end, options.sizes.begin);
  }
  if (*flags.end) {
    options.sizes.end = parse_size(texts.end);
    if (!*flags.begin) {
      options.sizes.begin = std::min(options.sizes.begin, options.sizes.end);
    }
  }
  if (!texts.sizes.empty()) {
    options.size_rule = parse_size_rule(texts.sizes);
  }
  if (!texts.total.empty()) {
    options.total_bytes = parse_size(texts.total);
  }
}

void parse_texts(Options& options, const Texts& texts, const Flags& flags) {
  parse_sizes(options, texts, flags);
  if (!texts.type.empty()) {
    options.type = parse_type(texts.type);
  }
  if (!texts.atomic.empty()) {
    options.atomic = parse_atomic(texts.atomic);
  }
  if (!texts.reduction.empty()) {
    options.reduction = parse_reduction(texts.reduction);
  }
  if (!texts.pattern.empty()) {
    options.pattern = parse_pattern(texts.pattern);
  }
  if (!texts.direction.empty()) {
    options.reads = parse_choice("--dir", texts.direction, "read", "write");
  }
  if (!texts.warmup.empty()) {
    options.warms_up = parse_choice("--warmup", texts.warmup, "on", "off");
  }
  if (!texts.nic_rate.empty()) {
    options.nic_rate_bits_per_s = parse_rate(texts.nic_rate);
  }
  options.prints_json = *flags.json && texts.json.empty();
  if (!texts.json.empty()) {
    options.output = texts.json;
  }
}

void check(const Options& options) {
  const auto fail = [](const std::string& sentence) { throw std::invalid_argument(sentence); };
  if (options.sizes.begin == 0 || options.sizes.end < options.sizes.begin) {
    fail(fmt::format("-b {} -e {}: sizes begin above 0 and end no lower than they begin",
                     options.sizes.begin, options.sizes.end));
  }
  if (options.sizes.factor < 2) {
    fail(fmt::format("-f {}: the factor is at least 2", options.sizes.factor));
  }
  if (options.iterations == 0 || options.window == 0 || options.count_per_step == 0 ||
      options.repeats == 0) {
    fail("-n, --window, --count-per-step and --repeats are at least 1");
  }
  if (options.duration_s < 0 || options.interval_ms == 0) {
    fail("--duration and --interval are times above 0");
  }
  if (options.collective && (options.pattern != Pattern::AllToAll || options.size_rule.pareto ||
                             options.reads || options.alternates_signal)) {
    fail("--collective is one weft_alltoall: no --pattern, --sizes, --dir or --alternate-signal");
  }
  if (options.reduction && !is_allowed(*options.reduction, options.type.type)) {
    fail(
        fmt::format("-o {} -d {}: and, or, xor are of integers, min and max not of complex numbers",
                    name_of(*options.reduction), options.type.name));
  }
  if (options.reads && options.alternates_signal) {
    fail("--alternate-signal goes with puts: leave out --dir read");
  }
}

std::string join(std::span<const char* const> arguments) {
  return fmt::format("{}", fmt::join(arguments, " "));
}

// One subcommand with its own defaults; CLI11 fills `options` only when it is the one chosen.
struct Parser {
  const SubcommandDefaults* defaults = nullptr;
  Options options;
  Texts texts;
  Flags flags;
  CLI::App* app = nullptr;
};

void add_parser(CLI::App& app, Parser& parser, const SubcommandDefaults& defaults) {
  parser.defaults = &defaults;
  Options& options = parser.options;
  options.subcommand = defaults.subcommand;
  options.sizes = defaults.sizes;
  options.iterations = defaults.iterations;
  options.warmup_iterations = defaults.warmup_iterations;
  options.window = defaults.window;
  options.reads = defaults.reads;
  options.pattern = defaults.pattern;
  parser.app = app.add_subcommand(std::string(defaults.name), std::string(defaults.help));
  add_size_options(*parser.app, options, parser.texts, parser.flags);
  add_traffic_options(*parser.app, options, parser.texts);
  add_setting_options(*parser.app, options, parser.texts, parser.flags);
}

// Whether each PE has room for messages of all others.
bool has_all_peers(Subcommand subcommand) {
  return subcommand == Subcommand::AlltoallLatency || subcommand == Subcommand::AllGetAll ||
         subcommand == Subcommand::AllPutAll || subcommand == Subcommand::ExchangeGet ||
         subcommand == Subcommand::MessageRate;
}

std::size_t slots_bytes(const Options& options, std::size_t pe_count) {
  const bool all_peers = has_all_peers(options.subcommand);
  std::size_t most = 0;
  for (const std::size_t size : size_sequence(options.sizes)) {
    const bool is_total =
        options.subcommand == Subcommand::AlltoallLatency && options.pattern == Pattern::AllToAll;
    const std::size_t message = is_total ? size / pe_count + 64 : size + 64;
    // Messages have places of their own only where each is looked at.
    const std::size_t slots =
        all_peers && !options.verifies ? 1 : window_for(options, message) * options.count_per_step;
    most = std::max(most, message * slots * (all_peers ? pe_count : 1));
  }
  return most;
}

}  // namespace

std::optional<Options> parse_options(std::span<const char* const> arguments) {
  CLI::App app(
      "Measures Weft. Start it with weft-run, for example:\n"
      "  weft-run -n 2 -- weft-perf put_bw -b 1M -e 16M\n"
      "On GPUs: weft-perf device --help, weft-perf stream --help",
      "weft-perf");
  app.require_subcommand(1);
  std::vector<Parser> parsers(subcommands().size());
  for (std::size_t i = 0; i < parsers.size(); ++i) {
    add_parser(app, parsers[i], subcommands()[i]);
  }
  try {
    app.parse(static_cast<int>(arguments.size()), arguments.data());
  } catch (const CLI::CallForHelp& help) {
    app.exit(help);
    return std::nullopt;
  } catch (const CLI::ParseError& error) {
    throw std::invalid_argument(
        fmt::format("{} (weft-perf --help lists the subcommands, weft-perf SUBCOMMAND --help its "
                    "options)",
                    error.what()));
  }
  const auto chosen =
      std::ranges::find_if(parsers, [](const Parser& p) { return p.app->parsed(); });
  parse_texts(chosen->options, chosen->texts, chosen->flags);
  check(chosen->options);
  chosen->options.command_line = join(arguments);
  return chosen->options;
}

std::uint64_t sample_interval_of(const Options& options) {
  const bool is_long = options.duration_s >= kSampledSecondsMin;
  return options.sample_interval_ms.value_or(is_long ? kSampleIntervalMs : 0);
}

std::uint64_t window_for(const Options& options, std::size_t message_bytes) {
  const std::uint64_t fits = kWindowBytesMax / std::max<std::size_t>(message_bytes, 1);
  return std::clamp<std::uint64_t>(options.window, 1, std::max<std::uint64_t>(fits, 1));
}

std::vector<std::pair<std::string, std::string>> environment_of(const Options& options,
                                                                std::size_t pe_count) {
  std::vector<std::pair<std::string, std::string>> variables;
  if (!options.policy.empty()) {
    variables.emplace_back("WEFT_RAIL_POLICY", options.policy);
  }
  if (options.warms_up) {
    variables.emplace_back("WEFT_WARMUP", *options.warms_up ? "yes" : "no");
  }
  // Twice the slots, for source and destination; blocks round up, and some are allocated in turn.
  const std::size_t buffers = 2 * slots_bytes(options, pe_count) + 2 * options.total_bytes;
  const std::size_t heap = buffers + buffers / 8 + kHeapReserve + pe_count * kGatherBytesPerPe;
  variables.emplace_back("WEFT_HEAP_SIZE", fmt::format("{}M", heap / kMegabyte + 1));
  return variables;
}

}  // namespace weft::perf
