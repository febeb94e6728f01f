#include "tools/perf/gpu/options.hpp"

#include <algorithm>
#include <array>
#include <iterator>
#include <stdexcept>

#include <CLI/CLI.hpp>
#include <fmt/format.h>

#include "tools/perf/option_names.hpp"
#include "tools/perf/reduction_values.hpp"

namespace weft::perf::gpu {
namespace {

constexpr std::size_t kMegabyte = std::size_t{1} << 20U;
constexpr std::size_t kHeapReserve = 16 * kMegabyte;

constexpr std::array<std::string_view, kScopeCount> kScopeNames{"thread", "warp", "block", "grid"};

// What is parsed further after CLI11 has taken the words apart.
struct Texts {
  std::string begin, end, type, atomic, reduction, scopes, direction, json;
};

struct Parser {
  const Defaults* defaults = nullptr;
  Options options;
  Texts texts;
  CLI::App* app = nullptr;
  CLI::Option* json = nullptr;
};

void add_options(Parser& parser) {
  CLI::App& app = *parser.app;
  Options& options = parser.options;
  Texts& texts = parser.texts;
  app.add_option("-b,--begin", texts.begin, "Smallest size, such as 8 or 64K");
  app.add_option("-e,--end", texts.end, "Largest size");
  app.add_option("-f,--factor", options.sizes.factor, "From one size to the next");
  app.add_option("-n,--iterations", options.iterations,
                 "Iterations of each size (default 1000; fewer where one moves much)");
  app.add_option("-w,--warmup-iterations", options.warmup_iterations,
                 "Iterations before those that are measured (default 20)");
  app.add_option("-c,--ctas", options.ctas, "CTAs of bandwidths and of grid scope (default 32)");
  app.add_option("-t,--threads", options.threads, "Threads of a CTA");
  app.add_option("-s,--scope", texts.scopes, "thread, warp, block, grid, some of them, or all");
  app.add_option("-d,--type", texts.type, "Integers of 32 and 64 bits, float, double");
  app.add_option("-o,--reduction", texts.reduction,
                 "Of reduction and reducescatter (default sum): " + reduction_names());
  app.add_option("-a,--atomic", texts.atomic, "Atomic: " + atomic_names());
  app.add_option("--dir", texts.direction, "write or read: puts or gets, whatever the name says");
  app.add_flag("--bidir", options.bidirectional, "Both directions at once");
  app.add_flag("--verify,!--no-verify", options.verifies,
               "Compare the data of the last iteration (default)");
  app.add_flag("--graph", options.uses_graph, "Of streams: also replayed from a CUDA graph");
  parser.json = app.add_option("--json", texts.json,
                               "JSON lines instead of tables; --json=FILE: there, beside tables")
                    ->expected(0, 1);
  app.add_option("--output", options.output, "The same as --json=FILE");
}

void add_parser(CLI::App& side, Parser& parser, const Defaults& defaults) {
  parser.defaults = &defaults;
  parser.options.side = defaults.side;
  parser.options.benchmark = defaults.benchmark;
  parser.options.name = defaults.name;
  parser.options.sizes = defaults.sizes;
  parser.options.threads = defaults.threads;
  parser.options.scopes = defaults.scopes;
  parser.app = side.add_subcommand(std::string(defaults.name), std::string(defaults.help));
  add_options(parser);
}

// ---- Meaning

std::vector<Scope> parse_scopes(const Defaults& defaults, const std::string& text) {
  if (text == "all") {
    return defaults.allowed;
  }
  std::vector<Scope> scopes;
  for (const std::string& word : CLI::detail::split(text, ',')) {
    const auto found = std::ranges::find(kScopeNames, word);
    const auto scope = static_cast<Scope>(found - kScopeNames.begin());
    if (found == kScopeNames.end() ||
        std::ranges::find(defaults.allowed, scope) == defaults.allowed.end()) {
      std::vector<std::string_view> names;
      std::ranges::transform(defaults.allowed, std::back_inserter(names),
                             [](Scope one) { return name_of(one); });
      throw std::invalid_argument(
          fmt::format("-s {}: {} has {}", word, defaults.name,
                      names.empty() ? "no scopes" : fmt::format("{}", fmt::join(names, ", "))));
    }
    scopes.push_back(scope);
  }
  return scopes;
}

Benchmark in_direction(Benchmark benchmark, const std::string& direction) {
  if (direction != "read" && direction != "write") {
    throw std::invalid_argument(fmt::format("--dir {}: use read or write", direction));
  }
  const bool reads = direction == "read";
  switch (benchmark) {
    case Benchmark::PutBw:
    case Benchmark::GetBw:
      return reads ? Benchmark::GetBw : Benchmark::PutBw;
    case Benchmark::PutLatency:
    case Benchmark::GetLatency:
      return reads ? Benchmark::GetLatency : Benchmark::PutLatency;
    default:
      throw std::invalid_argument("--dir goes with the bandwidths and latencies of put and get");
  }
}

void parse_sizes(Parser& parser) {
  SizeRange& sizes = parser.options.sizes;
  if (!parser.texts.begin.empty()) {
    sizes.begin = parse_size(parser.texts.begin);
    sizes.end = std::max(sizes.end, sizes.begin);
  }
  if (!parser.texts.end.empty()) {
    sizes.end = parse_size(parser.texts.end);
    parser.options.end_is_given = true;
    if (parser.texts.begin.empty()) {
      sizes.begin = std::min(sizes.begin, sizes.end);
    }
  }
}

void parse_texts(Parser& parser) {
  Options& options = parser.options;
  const Texts& texts = parser.texts;
  parse_sizes(parser);
  if (!texts.type.empty()) {
    options.type = parse_type(texts.type);
  }
  if (!texts.reduction.empty()) {
    options.reduction = parse_reduction(texts.reduction);
  }
  if (!texts.atomic.empty()) {
    options.atomic = parse_atomic(texts.atomic);
  }
  if (!texts.scopes.empty()) {
    options.scopes = parse_scopes(*parser.defaults, texts.scopes);
  }
  if (!texts.direction.empty()) {
    options.benchmark = in_direction(options.benchmark, texts.direction);
  }
  options.prints_json = *parser.json && texts.json.empty();
  if (!texts.json.empty()) {
    options.output = texts.json;
  }
}

void check(const Options& options) {
  const auto fail = [](const std::string& sentence) { throw std::invalid_argument(sentence); };
  constexpr std::uint32_t kCtasMax = 1024;
  constexpr std::uint32_t kThreadsMax = 1024;
  if (options.sizes.begin == 0 || options.sizes.end < options.sizes.begin) {
    fail(fmt::format("-b {} -e {}: sizes begin above 0 and end no lower than they begin",
                     options.sizes.begin, options.sizes.end));
  }
  if (options.sizes.factor < 2 || options.iterations == 0) {
    fail("-f is at least 2, and -n at least 1");
  }
  if (options.ctas == 0 || options.ctas > kCtasMax || options.threads > kThreadsMax) {
    fail(fmt::format("-c {} -t {}: 1 to {} CTAs of 1 to {} threads", options.ctas, options.threads,
                     kCtasMax, kThreadsMax));
  }
  if (options.type.bytes != 4 && options.type.bytes != 8) {
    fail(fmt::format("-d {}: on GPUs integers of 32 and 64 bits, float and double",
                     options.type.name));
  }
  if (options.reduction && !is_allowed(*options.reduction, options.type.type)) {
    fail(fmt::format("-o {} -d {}: and, or, xor are of integers", perf::name_of(*options.reduction),
                     options.type.name));
  }
}

// CLI11 says only that a subcommand is wanted.
void check_name(std::span<const char* const> arguments) {
  const std::string_view side = arguments[1];
  const std::string_view name = arguments.size() > 2 ? arguments[2] : "-";
  const bool is_known = std::ranges::any_of(benchmarks(), [&](const Defaults& defaults) {
    return defaults.name == name && (defaults.side == Side::Device) == (side == "device");
  });
  if (!is_known && !name.starts_with("-")) {
    throw std::invalid_argument(fmt::format(
        "{} {}: there is no such benchmark; weft-perf {} --help lists them", side, name, side));
  }
}

std::string help_text() {
  return "Measures Weft on GPUs, one PE for each. Start it with weft-run, for example:\n"
         "  weft-run -n 2 -- weft-perf device shmem_put_bw -b 1M -e 16M\n"
         "  weft-run -n 4 -- weft-perf stream alltoall --graph";
}

}  // namespace

std::string_view name_of(Scope scope) {
  return kScopeNames[static_cast<std::size_t>(scope)];
}

bool is_for_gpu(std::span<const char* const> arguments) {
  return arguments.size() > 1 &&
         (std::string_view(arguments[1]) == "device" || std::string_view(arguments[1]) == "stream");
}

std::optional<Options> parse_options(std::span<const char* const> arguments) {
  check_name(arguments);
  CLI::App app(help_text(), "weft-perf");
  app.require_subcommand(1);
  CLI::App* device = app.add_subcommand("device", "Kernels that call Weft");
  CLI::App* stream = app.add_subcommand("stream", "What the host puts on a CUDA stream");
  device->require_subcommand(1);
  stream->require_subcommand(1);
  std::vector<Parser> parsers(benchmarks().size());
  for (std::size_t i = 0; i < parsers.size(); ++i) {
    const Defaults& defaults = benchmarks()[i];
    add_parser(defaults.side == Side::Device ? *device : *stream, parsers[i], defaults);
  }
  try {
    app.parse(static_cast<int>(arguments.size()), arguments.data());
  } catch (const CLI::CallForHelp& help) {
    app.exit(help);
    return std::nullopt;
  } catch (const CLI::ParseError& error) {
    throw std::invalid_argument(
        fmt::format("{} (weft-perf {} --help lists the benchmarks)", error.what(), arguments[1]));
  }
  const auto chosen =
      std::ranges::find_if(parsers, [](const Parser& p) { return p.app->parsed(); });
  parse_texts(*chosen);
  check(chosen->options);
  chosen->options.command_line = fmt::format("{}", fmt::join(arguments, " "));
  return chosen->options;
}

std::size_t largest_size(const Options& options, Scope scope) {
  // One thread moves 1 MiB in some ms, one warp 16 MiB.
  constexpr std::size_t kOfThread = kMegabyte;
  constexpr std::size_t kOfWarp = 16 * kMegabyte;
  const std::size_t end = options.sizes.end;
  if (options.end_is_given || scope == Scope::Block || scope == Scope::Grid) {
    return end;
  }
  return std::min(end, scope == Scope::Thread ? kOfThread : kOfWarp);
}

std::uint64_t iterations_for(const Options& options, std::size_t bytes, std::size_t budget) {
  constexpr std::size_t kLeast = 4;
  const std::size_t affordable = std::max(kLeast, budget / std::max<std::size_t>(1, bytes));
  return std::min<std::uint64_t>(affordable, options.iterations);
}

std::vector<std::pair<std::string, std::string>> environment_of(const Options& options) {
  const std::size_t buffers = 2 * options.sizes.end;
  const std::size_t heap = buffers + buffers / 8 + kHeapReserve;
  return {{"WEFT_DEVICE_HEAP_SIZE", fmt::format("{}M", heap / kMegabyte + 1)}};
}

}  // namespace weft::perf::gpu
