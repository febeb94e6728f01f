// putv_rate: rows a second from PE 0 to its partner in lists of --window rows, each list with one
// signal, against the two ways without lists: a put_signal for each row, and bare puts, which
// nobody is told of. All three alternate in one run. Rows lie apart at the target, as pages of a
// cache do.
#include <algorithm>
#include <vector>

#include <fmt/format.h>

#include "tools/perf/measure.hpp"
#include "tools/perf/payload.hpp"
#include "tools/perf/runs.hpp"

namespace weft::perf {
namespace {

constexpr std::uint64_t kRounds = 8;
constexpr std::uint64_t kListsPerQuiet = 16;

struct Rows {
  Rows(std::size_t row_bytes, std::uint64_t row_count)
      : source(row_bytes * row_count), dest(2 * row_bytes * row_count), word(8) {
    fill_poison(dest.bytes());
    fill_payload(source.bytes(), {.source = weft_pe() == 0 ? 0U : 1U});
    *word.words() = 0;
    for (std::uint64_t row = 0; row < row_count; ++row) {
      list.push_back({dest.data() + 2 * row_bytes * (row_count - 1 - row),
                      source.data() + row * row_bytes, row_bytes});
    }
    Job::barrier();
  }

  SymmetricBuffer source;
  SymmetricBuffer dest;
  SymmetricBuffer word;
  std::vector<weft_segment> list;
};

weft_signal one_more(const Rows& rows) {
  return {.word = rows.word.words(), .value = 1, .operation = WEFT_SIGNAL_ADD};
}

void put_list(const Rows& rows, int pe) {
  require(weft_putv_signal_nbi(rows.list.data(), rows.list.size(), one_more(rows), pe));
}

void put_signals(const Rows& rows, int pe) {
  for (const weft_segment& row : rows.list) {
    require(weft_put_signal_nbi(row.dest, row.source, row.bytes, one_more(rows), pe));
  }
}

void put_rows(const Rows& rows, int pe) {
  for (const weft_segment& row : rows.list) {
    require(weft_put_nbi(row.dest, row.source, row.bytes, pe));
  }
}

using Way = void (*)(const Rows& rows, int pe);

double seconds_of(Way way, const Rows& rows, std::uint64_t count, int pe) {
  const Clock::time_point start = Clock::now();
  for (std::uint64_t i = 1; i <= count; ++i) {
    way(rows, pe);
    if (i % kListsPerQuiet == 0) {
      require(weft_quiet());
    }
  }
  require(weft_quiet());
  return seconds_since(start);
}

struct PutvRates {  // of rows
  double list = 0;
  double put_signal = 0;
  double put = 0;
  std::uint64_t signals = 0;
};

PutvRates measure_rates(const Run& run, const Rows& rows) {
  const int pe = static_cast<int>(run.job.partner());
  const std::uint64_t count =
      std::max<std::uint64_t>(run.options.iterations / kRounds / rows.list.size(), 1);
  double list = 0;
  double put_signal = 0;
  double put = 0;
  std::uint64_t rounds = 0;
  const Clock::time_point start = Clock::now();
  while (rounds < kRounds || seconds_since(start) < run.options.duration_s) {
    list += seconds_of(&put_list, rows, count, pe);
    put_signal += seconds_of(&put_signals, rows, count, pe);
    put += seconds_of(&put_rows, rows, count, pe);
    ++rounds;
  }
  const std::uint64_t lists = rounds * count;
  const auto sent = static_cast<double>(lists * rows.list.size());
  return {.list = sent / list,
          .put_signal = sent / put_signal,
          .put = sent / put,
          .signals = lists * (1 + rows.list.size())};
}

// All signals have been counted, and each row is in its place.
std::uint64_t count_wrong(const Rows& rows, std::uint64_t signals) {
  std::uint64_t wrong = weft_signal_fetch(rows.word.words()) == signals ? 0 : 1;
  std::vector<std::byte> seen(rows.source.bytes().size());
  const std::size_t row_bytes = rows.list.front().bytes;
  for (std::size_t row = 0; row < rows.list.size(); ++row) {
    const auto* here = static_cast<const std::byte*>(rows.list[row].dest);
    std::copy_n(here, row_bytes, seen.data() + row * row_bytes);
  }
  wrong += check_payload(seen, {.source = 0}).wrong_bytes;
  return wrong;
}

void run_size(const Run& run, std::size_t size) {
  const Rows rows(size, run.options.window);
  const int partner = static_cast<int>(run.job.partner());
  const bool sends = run.job.me() == 0;
  const std::uint64_t warmup = run.options.warmup_iterations / rows.list.size();
  if (sends) {
    seconds_of(&put_list, rows, warmup, partner);
  }
  Job::barrier();
  const PutvRates rates = sends ? measure_rates(run, rows) : PutvRates{};
  Job::barrier();
  const std::uint64_t signals = run.job.sum(sends ? warmup + rates.signals : 0);
  require_right(run.job, run.job.me() == run.job.partner() ? count_wrong(rows, signals) : 0);
  run.report.row(
      {fmt::format("{}", size), fmt::format("{}", rows.list.size()),
       fmt::format("{:.6f}", rates.list / 1e6), fmt::format("{:.6f}", rates.put_signal / 1e6),
       fmt::format("{:.6f}", rates.put / 1e6)},
      {.size = size,
       .value = rates.list,
       .unit = "rows/s",
       .more = {{"rows_per_list", static_cast<std::uint64_t>(rows.list.size())},
                {"put_signal_nbi", rates.put_signal},
                {"put_nbi", rates.put},
                {"verified", true}}});
}

}  // namespace

void run_putv_rate(const Run& run) {
  run.report.header("putv_rate", {{"size(B)", 12},
                                  {"rows", 8},
                                  {"putv_signal(M rows/s)", 24},
                                  {"put_signal(M rows/s)", 22},
                                  {"put(M rows/s)"}});
  for (const std::size_t size : size_sequence(run.options.sizes)) {
    run_size(run, size);
  }
}

}  // namespace weft::perf
