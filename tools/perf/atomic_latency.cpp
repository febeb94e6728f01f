// atomic_latency: one atomic at a time on a word of PE 0's partner; those that return nothing are
// completed by a quiet. The width is that of -d: 32 or 64 bits.
#include <utility>

#include <fmt/format.h>

#include "tools/perf/option_names.hpp"
#include "tools/perf/runs.hpp"

namespace weft::perf {
namespace {

// The typed functions of one width under one name.
struct Uint32 {
  using Type = std::uint32_t;
  static constexpr auto kSet = weft_uint32_atomic_set;
  static constexpr auto kFetch = weft_uint32_atomic_fetch;
  static constexpr auto kAdd = weft_uint32_atomic_add;
  static constexpr auto kFetchAdd = weft_uint32_atomic_fetch_add;
  static constexpr auto kInc = weft_uint32_atomic_inc;
  static constexpr auto kFetchInc = weft_uint32_atomic_fetch_inc;
  static constexpr auto kSwap = weft_uint32_atomic_swap;
  static constexpr auto kCompareSwap = weft_uint32_atomic_compare_swap;
  static constexpr auto kAnd = weft_uint32_atomic_and;
  static constexpr auto kOr = weft_uint32_atomic_or;
  static constexpr auto kXor = weft_uint32_atomic_xor;
};

struct Uint64 {
  using Type = std::uint64_t;
  static constexpr auto kSet = weft_uint64_atomic_set;
  static constexpr auto kFetch = weft_uint64_atomic_fetch;
  static constexpr auto kAdd = weft_uint64_atomic_add;
  static constexpr auto kFetchAdd = weft_uint64_atomic_fetch_add;
  static constexpr auto kInc = weft_uint64_atomic_inc;
  static constexpr auto kFetchInc = weft_uint64_atomic_fetch_inc;
  static constexpr auto kSwap = weft_uint64_atomic_swap;
  static constexpr auto kCompareSwap = weft_uint64_atomic_compare_swap;
  static constexpr auto kAnd = weft_uint64_atomic_and;
  static constexpr auto kOr = weft_uint64_atomic_or;
  static constexpr auto kXor = weft_uint64_atomic_xor;
};

template <typename Call>
double time_each(const Options& options, bool needs_quiet, const Call& call) {
  const auto repeat = [&](std::uint64_t count) {
    for (std::uint64_t i = 0; i < count; ++i) {
      call();
      if (needs_quiet) {
        require(weft_quiet());
      }
    }
  };
  repeat(options.warmup_iterations);
  const Clock::time_point start = Clock::now();
  repeat(options.iterations);
  return seconds_since(start) / static_cast<double>(options.iterations);
}

template <typename Width>
double time_kind(const Options& options, AtomicKind kind, typename Width::Type* word, int pe) {
  const auto posted = [&](auto&& call) {
    return time_each(options, true, [&] { require(call()); });
  };
  const auto fetched = [&](auto&& call) {
    return time_each(options, false, [&] { static_cast<void>(call()); });
  };
  switch (kind) {
    case AtomicKind::Set:
      return posted([&] { return Width::kSet(word, 1, pe); });
    case AtomicKind::Fetch:
      return fetched([&] { return Width::kFetch(word, pe); });
    case AtomicKind::Add:
      return posted([&] { return Width::kAdd(word, 1, pe); });
    case AtomicKind::FetchAdd:
      return fetched([&] { return Width::kFetchAdd(word, 1, pe); });
    case AtomicKind::Inc:
      return posted([&] { return Width::kInc(word, pe); });
    case AtomicKind::FetchInc:
      return fetched([&] { return Width::kFetchInc(word, pe); });
    case AtomicKind::Swap:
      return fetched([&] { return Width::kSwap(word, 1, pe); });
    case AtomicKind::CompareSwap:
      return fetched([&] { return Width::kCompareSwap(word, 1, 2, pe); });
    case AtomicKind::And:
      return posted([&] { return Width::kAnd(word, 1, pe); });
    case AtomicKind::Or:
      return posted([&] { return Width::kOr(word, 1, pe); });
    case AtomicKind::Xor:
      return posted([&] { return Width::kXor(word, 1, pe); });
    case AtomicKind::All:
      return 0;  // the caller goes through them
  }
  return 0;
}

void run_kind(const Run& run, AtomicKind kind, const SymmetricBuffer& word) {
  const Options& options = run.options;
  const int pe = static_cast<int>(run.job.partner());
  double seconds = 0;
  if (run.job.me() == 0) {
    seconds =
        options.type.bytes == sizeof(std::uint32_t)
            ? time_kind<Uint32>(options, kind, reinterpret_cast<std::uint32_t*>(word.data()), pe)
            : time_kind<Uint64>(options, kind, word.words(), pe);
  }
  Job::barrier();
  run.report.row({std::string(name_of(kind)), width_of(options.type), "None",
                  fmt::format("{:.6f}", seconds * 1e6)},
                 {.size = options.type.bytes,
                  .value = seconds * 1e6,
                  .unit = "us",
                  .more = {{"atomic", name_of(kind)}}});
}

}  // namespace

void run_atomic_latency(const Run& run) {
  const SymmetricBuffer word(sizeof(std::uint64_t));
  *word.words() = 0;
  Job::barrier();
  run.report.header("atomic_latency",
                    {{"atomic", 16}, {"type", 10}, {"scope", 10}, {"latency(us)"}});
  for (int kind = 0; kind < static_cast<int>(AtomicKind::All); ++kind) {
    const auto one = static_cast<AtomicKind>(kind);
    if (run.options.atomic == AtomicKind::All || run.options.atomic == one) {
      run_kind(run, one, word);
    }
  }
}

}  // namespace weft::perf
