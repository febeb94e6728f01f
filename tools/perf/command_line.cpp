#include "tools/perf/command_line.hpp"

#include <algorithm>
#include <array>
#include <iterator>
#include <stdexcept>

#include <CLI/CLI.hpp>
#include <fmt/format.h>

#include "tools/perf/benchmark.hpp"
#include "tools/perf/nic_rates.hpp"
#include "tools/perf/option_names.hpp"
#include "tools/perf/reduction_values.hpp"

namespace weft::perf {
namespace {

template <typename... T>
[[noreturn]] void refuse(fmt::format_string<T...> sentence, T&&... values) {
  throw std::invalid_argument(fmt::format(sentence, std::forward<T>(values)...));
}

bool parse_choice(std::string_view option,
                  std::string_view text,
                  std::string_view yes,
                  std::string_view no) {
  if (text != yes && text != no) {
    refuse("{} {}: use {} or {}", option, text, yes, no);
  }
  return text == yes;
}

// ---- What all benchmarks understand -------------------------------------------------------------

// What is parsed further after CLI11 has taken the words apart.
struct CommonTexts {
  std::string begin, end, type, atomic, reduction, direction, json;
  CLI::Option* json_option = nullptr;
};

void add_common_options(CLI::App& app, CommonOptions& options, CommonTexts& texts) {
  app.add_option("-b,--begin", texts.begin, "Smallest size, such as 8 or 64K");
  app.add_option("-e,--end", texts.end, "Largest size");
  app.add_option("-f,--factor", options.sizes.factor, "From one size to the next (default 2)");
  app.add_option("-n,--iterations", options.iterations,
                 fmt::format("Iterations of each size (default {})", options.iterations));
  app.add_option("-w,--warmup-iterations", options.warmup_iterations,
                 fmt::format("Iterations before those that are measured (default {})",
                             options.warmup_iterations));
  app.add_option("-d,--type", texts.type, "Type of the elements: " + type_names());
  app.add_option("-a,--atomic", texts.atomic, "Atomic: " + atomic_names());
  app.add_option("-o,--reduction", texts.reduction,
                 "Of the reductions (default sum): " + reduction_names());
  app.add_option("--dir", texts.direction, "write or read: puts or gets, whatever the name says");
  app.add_flag("--bidir", options.bidirectional, "Both directions at once");
  app.add_flag(
      "--verify,!--no-verify", options.verifies,
      fmt::format("Check the bytes that arrive (default: {})", options.verifies ? "yes" : "no"));
  texts.json_option =
      app.add_option("--json", texts.json,
                     "JSON lines instead of tables; --json=FILE: there, beside tables")
          ->expected(0, 1);
  app.add_option("--output", options.output, "The same as --json=FILE");
}

void parse_sizes(CommonOptions& options, const CommonTexts& texts) {
  SizeRange& sizes = options.sizes;
  if (!texts.begin.empty()) {
    sizes.begin = parse_size(texts.begin);
    sizes.end = std::max(sizes.end, sizes.begin);
  }
  if (!texts.end.empty()) {
    sizes.end = parse_size(texts.end);
    options.end_is_given = true;
    if (texts.begin.empty()) {
      sizes.begin = std::min(sizes.begin, sizes.end);
    }
  }
}

void parse_common(CommonOptions& options, const CommonTexts& texts) {
  parse_sizes(options, texts);
  if (!texts.type.empty()) {
    options.type = parse_type(texts.type);
  }
  if (!texts.atomic.empty()) {
    options.atomic = parse_atomic(texts.atomic);
  }
  if (!texts.reduction.empty()) {
    options.reduction = parse_reduction(texts.reduction);
  }
  options.prints_json = *texts.json_option && texts.json.empty();
  if (!texts.json.empty()) {
    options.output = texts.json;
  }
}

void check_common(const CommonOptions& options) {
  const SizeRange& sizes = options.sizes;
  if (sizes.begin == 0 || sizes.end < sizes.begin) {
    refuse("-b {} -e {}: sizes begin above 0 and end no lower than they begin", sizes.begin,
           sizes.end);
  }
  if (sizes.factor < 2) {
    refuse("-f {}: the factor is at least 2", sizes.factor);
  }
  if (options.iterations == 0) {
    refuse("-n is at least 1");
  }
  if (options.reduction && !is_allowed(*options.reduction, options.type.type)) {
    refuse("-o {} -d {}: and, or, xor are of integers, min and max not of complex numbers",
           name_of(*options.reduction), options.type.name);
  }
}

// ---- The host's ---------------------------------------------------------------------------------

struct HostParser {
  Options options;
  CommonTexts common;
  std::string pattern, sizes, warmup, total, nic_rate;
  CLI::App* app = nullptr;
};

void add_traffic_options(CLI::App& app, HostParser& parser) {
  Options& options = parser.options;
  app.add_option("--duration", options.duration_s, "Seconds for each size, instead of -n");
  app.add_option("--repeats", options.repeats,
                 "Of each row of collectives and of exchanges; the median counts (default 5)");
  app.add_option("--window", options.window, "Steps between two quiets");
  app.add_option("--sizes", parser.sizes, "fixed, or pareto:ALPHA:SEED");
  app.add_option("--pattern", parser.pattern, "alltoall, shuffled, incast, pairs or random");
  app.add_option("--start-apart", options.start_apart_us,
                 "In patterns: us that a PE waits at most, drawn, before each window");
  app.add_option("--count-per-step", options.count_per_step, "Operations to one peer in a step");
  app.add_option("--seed", options.seed,
                 "Of --pattern random and shuffled, and of paged_write's pages");
  app.add_option("--total", parser.total, "Size of paged_write's buffer (default 16M)");
  app.add_option("--interval", options.interval_ms, "ms between two lines of paged_write");
  app.add_option("--clients", options.clients,
                 "Clients of paged_write, PEs of the first node (default 1)");
  app.add_flag("--alternate-signal", options.alternates_signal, "After each put one of 8 bytes");
  app.add_flag("--collective", options.collective, "Call weft_alltoall instead of single puts");
  app.add_flag_callback(
      "--aggregate", [&] { options.aggregates = true; },
      "all_get_all and its kin: only windows of operations with one quiet");
  app.add_flag_callback(
      "--no-aggregate", [&] { options.aggregates = false; },
      "Only operations that each wait (default: a row for both)");
}

void add_setting_options(CLI::App& app, HostParser& parser) {
  Options& options = parser.options;
  app.add_option("--policy", options.policy, "Sets WEFT_RAIL_POLICY");
  app.add_option("--warmup", parser.warmup, "on or off: sets WEFT_WARMUP");
  app.add_option(
      "--nic-rate", parser.nic_rate,
      "What each NIC can carry in each direction, such as 40mbit (default: as the lab or "
      "the kernel says)");
  app.add_option("--interval-ms", options.sample_interval_ms,
                 "ms between two looks at the NICs, for max/mean at each moment; 0: none (default: "
                 "10 where --duration is at least 0.5)");
  app.add_flag(
      "--no-counters", [&](std::int64_t) { options.shows_counters = false; },
      "Leave out the bytes of each NIC");
}

void add_parser(CLI::App& app, HostParser& parser, const Benchmark& benchmark) {
  Options& options = parser.options;
  const Defaults& defaults = benchmark.defaults;
  options.benchmark = &benchmark;
  options.sizes = defaults.sizes;
  options.iterations = defaults.iterations;
  options.warmup_iterations = defaults.warmup_iterations;
  options.window = defaults.window;
  options.reads = defaults.reads;
  options.pattern = defaults.pattern;
  parser.app = app.add_subcommand(std::string(benchmark.name), std::string(benchmark.help));
  add_common_options(*parser.app, options, parser.common);
  add_traffic_options(*parser.app, parser);
  add_setting_options(*parser.app, parser);
}

void parse_texts(HostParser& parser) {
  Options& options = parser.options;
  parse_common(options, parser.common);
  if (!parser.sizes.empty()) {
    options.size_rule = parse_size_rule(parser.sizes);
  }
  if (!parser.total.empty()) {
    options.total_bytes = parse_size(parser.total);
  }
  if (!parser.pattern.empty()) {
    options.pattern = parse_pattern(parser.pattern);
  }
  if (!parser.common.direction.empty()) {
    options.reads = parse_choice("--dir", parser.common.direction, "read", "write");
  }
  if (!parser.warmup.empty()) {
    options.warms_up = parse_choice("--warmup", parser.warmup, "on", "off");
  }
  if (!parser.nic_rate.empty()) {
    options.nic_rate_bits_per_s = parse_rate(parser.nic_rate);
  }
}

void check(const Options& options) {
  check_common(options);
  if (options.window == 0 || options.count_per_step == 0 || options.repeats == 0) {
    refuse("--window, --count-per-step and --repeats are at least 1");
  }
  if (!(options.start_apart_us >= 0) || options.start_apart_us > 1e6) {
    refuse("--start-apart is in us, from 0 to 1000000");
  }
  if (options.clients == 0) {
    refuse("--clients is at least 1");
  }
  if (options.duration_s < 0 || options.interval_ms == 0) {
    refuse("--duration and --interval are times above 0");
  }
  if (options.collective && (options.pattern != Pattern::AllToAll || options.size_rule.pareto ||
                             options.reads || options.alternates_signal)) {
    refuse("--collective is one weft_alltoall: no --pattern, --sizes, --dir or --alternate-signal");
  }
  if (options.reads && options.alternates_signal) {
    refuse("--alternate-signal goes with puts: leave out --dir read");
  }
}

// ---- GPUs' --------------------------------------------------------------------------------------

struct GpuParser {
  gpu::Options options;
  CommonTexts common;
  std::string scopes, total;
  CLI::App* app = nullptr;
};

void add_parser(CLI::App& side, GpuParser& parser, const gpu::Benchmark& benchmark) {
  constexpr std::uint64_t kIterations = 1000;
  constexpr std::uint64_t kWarmupIterations = 20;
  gpu::Options& options = parser.options;
  options.benchmark = &benchmark;
  options.kind = benchmark.kind;
  options.name = benchmark.name;
  options.sizes = benchmark.sizes;
  options.iterations = kIterations;
  options.warmup_iterations = kWarmupIterations;
  options.verifies = true;
  options.threads = benchmark.threads;
  options.scopes = benchmark.scopes;
  CLI::App& app = *side.add_subcommand(std::string(benchmark.name), std::string(benchmark.help));
  parser.app = &app;
  add_common_options(app, options, parser.common);
  app.add_option("-c,--ctas", options.ctas, "CTAs of bandwidths and of grid scope (default 32)");
  app.add_option("-t,--threads", options.threads, "Threads of a CTA");
  app.add_option("-s,--scope", parser.scopes, "thread, warp, block, grid, some of them, or all");
  app.add_option("--total", parser.total,
                 "What paged_write moves at most, in passes over 64M (default 1G)");
  app.add_flag("--graph", options.uses_graph, "Of streams: also replayed from a CUDA graph");
}

std::vector<gpu::Scope> parse_scopes(const gpu::Benchmark& benchmark, const std::string& text) {
  if (text == "all") {
    return benchmark.allowed;
  }
  std::vector<gpu::Scope> scopes;
  for (const std::string& word : CLI::detail::split(text, ',')) {
    const auto found = std::ranges::find(benchmark.allowed, word, gpu::name_of);
    if (found == benchmark.allowed.end()) {
      std::vector<std::string_view> names;
      std::ranges::transform(benchmark.allowed, std::back_inserter(names), gpu::name_of);
      refuse("-s {}: {} has {}", word, benchmark.name,
             names.empty() ? "no scopes" : fmt::format("{}", fmt::join(names, ", ")));
    }
    scopes.push_back(*found);
  }
  return scopes;
}

gpu::Kind in_direction(gpu::Kind kind, const std::string& direction) {
  using enum gpu::Kind;
  const bool reads = parse_choice("--dir", direction, "read", "write");
  switch (kind) {
    case PutBw:
    case GetBw:
      return reads ? GetBw : PutBw;
    case PutLatency:
    case GetLatency:
      return reads ? GetLatency : PutLatency;
    default:
      refuse("--dir goes with the bandwidths and latencies of put and get");
  }
}

void parse_texts(GpuParser& parser) {
  gpu::Options& options = parser.options;
  parse_common(options, parser.common);
  if (!parser.total.empty()) {
    options.paged_bytes = parse_size(parser.total);
  }
  if (!parser.scopes.empty()) {
    options.scopes = parse_scopes(*options.benchmark, parser.scopes);
  }
  if (!parser.common.direction.empty()) {
    options.kind = in_direction(options.kind, parser.common.direction);
  }
}

void check(const gpu::Options& options) {
  constexpr std::uint32_t kCtasMax = 1024;
  constexpr std::uint32_t kThreadsMax = 1024;
  check_common(options);
  if (options.ctas == 0 || options.ctas > kCtasMax || options.threads > kThreadsMax) {
    refuse("-c {} -t {}: 1 to {} CTAs of 1 to {} threads", options.ctas, options.threads, kCtasMax,
           kThreadsMax);
  }
  if (options.type.bytes != 4 && options.type.bytes != 8) {
    refuse("-d {}: on GPUs integers of 32 and 64 bits, float and double", options.type.name);
  }
}

// ---- All of it ----------------------------------------------------------------------------------

constexpr std::string_view kHelp =
    "Measures Weft. Start it with weft-run, for example:\n"
    "  weft-run -n 2 -- weft-perf put_bw -b 1M -e 16M\n"
    "  weft-run -n 2 -- weft-perf device shmem_put_bw -b 1M -e 16M\n"
    "  weft-run -n 4 -- weft-perf stream alltoall --graph";

// CLI11 says only that a subcommand is wanted.
void check_gpu_name(std::span<const char* const> arguments) {
  const std::string_view side = arguments.size() > 2 ? arguments[1] : "";
  if ((side != "device" && side != "stream") || *arguments[2] == '-') {
    return;
  }
  const bool is_known = std::ranges::any_of(gpu::benchmarks(), [&](const auto& benchmark) {
    return benchmark.name == arguments[2] &&
           (benchmark.side == gpu::Side::Device) == (side == "device");
  });
  if (!is_known) {
    refuse("{} {}: there is no such benchmark; weft-perf {} --help lists them", side, arguments[2],
           side);
  }
}

// The options of the parser whose benchmark was named, if one was.
template <typename Parser>
auto finish(std::span<Parser> parsers, std::span<const char* const> arguments)
    -> std::optional<decltype(Parser::options)> {
  const auto chosen =
      std::ranges::find_if(parsers, [](const Parser& p) { return p.app->parsed(); });
  if (chosen == parsers.end()) {
    return std::nullopt;
  }
  parse_texts(*chosen);
  check(chosen->options);
  chosen->options.command_line = fmt::format("{}", fmt::join(arguments, " "));
  return chosen->options;
}

}  // namespace

CommandLine parse_command_line(std::span<const char* const> arguments) {
  check_gpu_name(arguments);
  CLI::App app(std::string(kHelp), "weft-perf");
  app.set_version_flag("--version", "weft-perf " WEFT_VERSION);
  // More than one is refused here, none below: CLI11 would not say which option it does not know.
  app.require_subcommand(0, 1);
  std::vector<HostParser> host(benchmarks().size());
  for (std::size_t i = 0; i < host.size(); ++i) {
    add_parser(app, host[i], benchmarks()[i]);
  }
  CLI::App& device = *app.add_subcommand("device", "Kernels that call Weft");
  CLI::App& stream = *app.add_subcommand("stream", "What the host puts on a CUDA stream");
  device.require_subcommand(0, 1);
  stream.require_subcommand(0, 1);
  std::vector<GpuParser> gpu(gpu::benchmarks().size());
  for (std::size_t i = 0; i < gpu.size(); ++i) {
    const gpu::Benchmark& benchmark = gpu::benchmarks()[i];
    add_parser(benchmark.side == gpu::Side::Device ? device : stream, gpu[i], benchmark);
  }
  try {
    app.parse(static_cast<int>(arguments.size()), arguments.data());
  } catch (const CLI::Success& success) {  // --help or --version
    app.exit(success);
    return {};
  } catch (const CLI::ParseError& error) {
    refuse("{} (weft-perf --help lists the benchmarks, weft-perf NAME --help the options of one)",
           error.what());
  }
  CommandLine line{.host = finish(std::span(host), arguments),
                   .gpu = finish(std::span(gpu), arguments)};
  if (!line.host && !line.gpu) {
    refuse("no benchmark is named; weft-perf --help lists them");
  }
  return line;
}

}  // namespace weft::perf
