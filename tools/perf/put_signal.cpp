// put_signal_rate: put_signals a second to one peer, or with --pattern alltoall to all of them in
// turn, against what a program does without them: put, quiet, put of the signal word, quiet. Both
// alternate in one run, so that a change of the machine's mood meets both. put_signal_ping_pong:
// the round trip of a put_signal and its answer.
#include <algorithm>
#include <numeric>
#include <vector>

#include <fmt/format.h>

#include "tools/perf/measure.hpp"
#include "tools/perf/payload.hpp"
#include "tools/perf/runs.hpp"

namespace weft::perf {
namespace {

constexpr std::uint64_t kRounds = 8;

struct SignalBuffers {
  explicit SignalBuffers(std::size_t size) : source(size), dest(size), word(8), value(8) {
    fill_poison(dest.bytes());
    *word.words() = 0;
    *value.words() = 0;
    Job::barrier();
  }

  SymmetricBuffer source;
  SymmetricBuffer dest;
  SymmetricBuffer word;
  SymmetricBuffer value;
};

// Those to whom PE 0 sends.
std::vector<int> receivers_of(const Run& run) {
  if (run.options.pattern != Pattern::AllToAll) {
    return {static_cast<int>(run.job.partner())};
  }
  std::vector<int> targets(run.job.pe_count() - 1);
  std::iota(targets.begin(), targets.end(), 1);
  return targets;
}

double put_signals(const SignalBuffers& buffers,
                   std::uint64_t count,
                   std::uint64_t window,
                   const std::vector<int>& targets) {
  const weft_signal signal{.word = buffers.word.words(), .value = 1, .operation = WEFT_SIGNAL_ADD};
  const std::size_t bytes = buffers.source.bytes().size();
  const Clock::time_point start = Clock::now();
  std::size_t next = 0;
  for (std::uint64_t i = 1; i <= count; ++i) {
    require(weft_put_signal_nbi(buffers.dest.data(), buffers.source.data(), bytes, signal,
                                targets[next]));
    next = next + 1 < targets.size() ? next + 1 : 0;
    if (i % window == 0) {
      require(weft_quiet());
    }
  }
  require(weft_quiet());
  return seconds_since(start);
}

double put_quiet_puts(const SignalBuffers& buffers,
                      std::uint64_t count,
                      const std::vector<int>& targets) {
  const std::size_t bytes = buffers.source.bytes().size();
  const Clock::time_point start = Clock::now();
  for (std::uint64_t i = 0; i < count; ++i) {
    const int pe = targets[i % targets.size()];
    require(weft_put(buffers.dest.data(), buffers.source.data(), bytes, pe));
    require(weft_quiet());
    // The peer's word holds the sum of the signals; this one must not disturb it.
    require(weft_put(buffers.value.data(), buffers.value.data(), sizeof(std::uint64_t), pe));
    require(weft_quiet());
  }
  return seconds_since(start);
}

struct SignalRates {
  double put_signal = 0;
  double put_quiet_put = 0;
  std::uint64_t sent = 0;  // put_signals
};

SignalRates measure_rates(const Run& run, const SignalBuffers& buffers) {
  const Options& options = run.options;
  const std::vector<int> targets = receivers_of(run);
  // Each of the targets gets as many as the others.
  const std::uint64_t turns =
      std::max<std::uint64_t>(options.iterations / kRounds / targets.size(), 1);
  const std::uint64_t count = turns * targets.size();
  // The slow way takes longer for each; a quarter of the count is as exact and as quick.
  const std::uint64_t slow_count = std::max<std::uint64_t>(count / 4, 1);
  double seconds = 0;
  double slow_seconds = 0;
  std::uint64_t rounds = 0;
  const Clock::time_point start = Clock::now();
  while (rounds < kRounds || seconds_since(start) < options.duration_s) {
    seconds += put_signals(buffers, count, options.window, targets);
    slow_seconds += put_quiet_puts(buffers, slow_count, targets);
    ++rounds;
  }
  return {.put_signal = static_cast<double>(rounds * count) / seconds,
          .put_quiet_put = static_cast<double>(rounds * slow_count) / slow_seconds,
          .sent = rounds * count};
}

// After a quiet every signal has been applied; the word counts them. `sent` is PE 0's number; the
// others learn it here.
void check_word(const Run& run, const SignalBuffers& buffers, std::uint64_t sent) {
  const std::vector<int> targets = receivers_of(run);
  const std::uint64_t wanted = run.job.sum(sent) / targets.size();
  const std::uint64_t seen = weft_signal_fetch(buffers.word.words());
  const bool is_target =
      std::ranges::find(targets, static_cast<int>(run.job.me())) != targets.end();
  const bool is_wrong = is_target && seen != wanted;
  if (is_wrong) {
    fmt::print(stderr, "weft-perf: PE {}: {} signals have arrived, {} were sent\n", run.job.me(),
               seen, wanted);
  }
  require_right(run.job, is_wrong ? 1 : 0);
}

void run_rate_of(const Run& run, std::size_t size) {
  const SignalBuffers buffers(size);
  fill_payload(buffers.source.bytes(), {.source = run.job.me()});
  const std::vector<int> targets = receivers_of(run);
  const std::uint64_t warmup = run.options.warmup_iterations / targets.size() * targets.size();
  if (run.job.me() == 0) {
    static_cast<void>(put_signals(buffers, warmup, run.options.window, targets));
  }
  Job::barrier();
  const SignalRates rates = run.job.me() == 0 ? measure_rates(run, buffers) : SignalRates{};
  Job::barrier();
  check_word(run, buffers, run.job.me() == 0 ? warmup + rates.sent : 0);
  if (run.options.verifies && run.job.me() == run.job.partner()) {
    const PayloadCheck check = check_payload(buffers.dest.bytes(), {.source = 0});
    require_right(run.job, check.wrong_bytes);
  } else if (run.options.verifies) {
    require_right(run.job, 0);
  }
  const double ratio = rates.put_quiet_put > 0 ? rates.put_signal / rates.put_quiet_put : 0;
  run.report.row({fmt::format("{}", size), "None", fmt::format("{:.6f}", rates.put_signal / 1e6),
                  fmt::format("{:.6f}", rates.put_quiet_put / 1e6), fmt::format("{:.2f}", ratio)},
                 {.size = size,
                  .value = rates.put_signal,
                  .unit = "1/s",
                  .more = {{"put_quiet_put", rates.put_quiet_put}, {"ratio", ratio}}});
}

struct Turn {
  weft_signal signal;
  std::uint64_t number = 0;
  int peer = 0;
  bool serves = false;  // begins each rally
};

void play(const SignalBuffers& buffers, Turn turn, std::uint64_t count) {
  const std::size_t bytes = buffers.source.bytes().size();
  for (std::uint64_t i = 0; i < count; ++i) {
    turn.signal.value = ++turn.number;
    if (!turn.serves) {
      require(weft_signal_wait_until(turn.signal.word, WEFT_GE, turn.number, nullptr));
    }
    require(
        weft_put_signal(buffers.dest.data(), buffers.source.data(), bytes, turn.signal, turn.peer));
    if (turn.serves) {
      require(weft_signal_wait_until(turn.signal.word, WEFT_GE, turn.number, nullptr));
    }
  }
  require(weft_quiet());
}

double round_trip(const Run& run, std::size_t size) {
  const SignalBuffers buffers(size);
  const bool plays = run.job.me() == 0 || run.job.me() == run.job.partner();
  Turn turn{.signal = {.word = buffers.word.words(), .value = 0, .operation = WEFT_SIGNAL_SET},
            .number = 0,
            .peer = run.job.me() == 0 ? static_cast<int>(run.job.partner()) : 0,
            .serves = run.job.me() == 0};
  double seconds = 0;
  if (plays) {
    play(buffers, turn, run.options.warmup_iterations);
    turn.number = run.options.warmup_iterations;
    const Clock::time_point start = Clock::now();
    play(buffers, turn, run.options.iterations);
    seconds = seconds_since(start) / static_cast<double>(run.options.iterations);
  }
  Job::barrier();
  return seconds;
}

}  // namespace

void run_put_signal_rate(const Run& run) {
  run.report.header("put_signal_rate", {{"size(B)", 12},
                                        {"scope", 10},
                                        {"put_signal(M/s)", 18},
                                        {"put_quiet_put(M/s)", 20},
                                        {"ratio"}});
  for (const std::size_t size : size_sequence(run.options.sizes)) {
    run_rate_of(run, size);
  }
}

void run_put_signal_ping_pong(const Run& run) {
  run.report.header("put_signal_ping_pong", latency_columns());
  for (const std::size_t size : size_sequence(run.options.sizes)) {
    const double seconds = round_trip(run, size);
    run.report.row({fmt::format("{}", size), "None", fmt::format("{:.6f}", seconds * 1e6)},
                   {.size = size, .value = seconds * 1e6, .unit = "us"});
  }
}

}  // namespace weft::perf
