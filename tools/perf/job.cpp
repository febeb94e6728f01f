#include "tools/perf/job.hpp"

#include <algorithm>
#include <array>
#include <bit>
#include <cstdlib>
#include <cstring>
#include <utility>

#include <fmt/format.h>

namespace weft::perf {
namespace {

constexpr std::size_t kStopWord = 0;  // the loop that ends, and in which round
constexpr std::size_t kSumWord = 1;
constexpr std::size_t kGatherWords = 2;  // one for each PE

// How many PEs there will be, before init: launchers say so in variables of their own.
std::size_t expected_pe_count() {
  constexpr std::array kVariables{"WEFT_PE_COUNT", "OMPI_COMM_WORLD_SIZE", "PMI_SIZE",
                                  "SLURM_NTASKS", "WORLD_SIZE"};
  for (const char* name : kVariables) {
    const char* value = std::getenv(name);  // NOLINT(concurrency-mt-unsafe): before any thread
    const long count = value == nullptr ? 0 : std::strtol(value, nullptr, 10);
    if (count > 0) {
      return static_cast<std::size_t>(count);
    }
  }
  return 1;
}

void set_environment(const std::vector<std::pair<std::string, std::string>>& variables) {
  for (const auto& [name, value] : variables) {
    // What the user set by hand stays, save for what an option of this command names.
    const bool is_ours = !name.ends_with("HEAP_SIZE");
    setenv(name.c_str(), value.c_str(), is_ours ? 1 : 0);  // NOLINT(concurrency-mt-unsafe)
  }
}

}  // namespace

void require(int result) {
  if (result != WEFT_OK) {
    throw JobError(weft_last_error(), kStatusFailure);
  }
}

double seconds_since(Clock::time_point start) {
  return std::chrono::duration<double>(Clock::now() - start).count();
}

SymmetricBuffer::SymmetricBuffer(std::size_t bytes)
    : data_(static_cast<std::byte*>(weft_malloc(bytes))), size_(bytes) {
  if (data_ == nullptr) {
    throw JobError(
        fmt::format("{}; set WEFT_HEAP_SIZE higher, or choose smaller sizes", weft_last_error()),
        kStatusFailure);
  }
}

SymmetricBuffer::~SymmetricBuffer() {
  // A failed run leaves the job without this barrier; the process is about to end then.
  if (std::uncaught_exceptions() == 0) {
    static_cast<void>(weft_free(data_));
  }
}

Job::Job(const Options& options) : Job(environment_of(options, expected_pe_count())) {}

Job::Job(const std::vector<std::pair<std::string, std::string>>& variables) {
  set_environment(variables);
  if (weft_init() != WEFT_OK) {
    throw JobError("", kStatusUsage);  // weft_init has printed why
  }
  me_ = static_cast<std::uint32_t>(weft_pe());
  pe_count_ = static_cast<std::uint32_t>(weft_pe_count());
  node_count_ = static_cast<std::uint32_t>(weft_node_count());
  for (std::uint32_t pe = 0; pe < pe_count_; ++pe) {
    nodes_.push_back(static_cast<std::uint32_t>(weft_node_of(static_cast<int>(pe))));
  }
  const auto elsewhere =
      std::ranges::find_if(nodes_, [&](std::uint32_t node) { return node != nodes_[0]; });
  partner_ = elsewhere != nodes_.end() ? static_cast<std::uint32_t>(elsewhere - nodes_.begin())
                                       : std::min(1U, pe_count_ - 1);
  const Clock::time_point start = Clock::now();
  words_ = std::make_unique<SymmetricBuffer>((kGatherWords + pe_count_) * sizeof(std::uint64_t));
  first_allocation_s_ = seconds_since(start);
  std::ranges::fill(words_->bytes(), std::byte{0});
  barrier();
}

Job::~Job() {
  if (std::uncaught_exceptions() == 0) {
    words_.reset();
    static_cast<void>(weft_finalize());
  }
}

void Job::barrier() {
  require(weft_barrier_all());
}

void Job::post(std::size_t word,
               weft_signal_operation operation,
               std::uint64_t value,
               std::uint32_t pe) const {
  const weft_signal signal{.word = words_->words() + word, .value = value, .operation = operation};
  require(weft_signal_post(signal, static_cast<int>(pe)));
}

std::vector<double> Job::gather(double mine) const {
  post(kGatherWords + me_, WEFT_SIGNAL_SET, std::bit_cast<std::uint64_t>(mine), 0);
  barrier();
  std::vector<double> values;
  for (std::uint32_t pe = 0; me_ == 0 && pe < pe_count_; ++pe) {
    const std::uint64_t bits = weft_signal_fetch(words_->words() + kGatherWords + pe);
    values.push_back(std::bit_cast<double>(bits));
  }
  barrier();
  return values;
}

std::uint64_t Job::sum(std::uint64_t mine) {
  for (std::uint32_t pe = 0; mine != 0 && pe < pe_count_; ++pe) {
    post(kSumWord, WEFT_SIGNAL_ADD, mine, pe);
  }
  barrier();
  const std::uint64_t all = weft_signal_fetch(words_->words() + kSumWord);
  barrier();
  return all - std::exchange(sums_so_far_, all);
}

std::vector<std::string> Job::gather(const std::string& mine) {
  // A block has one size on all PEs, so each makes room for the texts of all.
  const std::uint64_t total = sum(mine.size());
  const std::vector<double> lengths = gather(static_cast<double>(mine.size()));
  const SymmetricBuffer block(std::max<std::uint64_t>(total, 1));
  std::memcpy(block.data(), mine.data(), mine.size());
  barrier();
  std::vector<std::string> all;
  for (std::uint32_t pe = 0; pe < lengths.size(); ++pe) {
    std::string& text = all.emplace_back(static_cast<std::size_t>(lengths[pe]), '\0');
    require(weft_get(text.data(), block.data(), text.size(), static_cast<int>(pe)));
  }
  return all;
}

std::string Job::spread(const std::string& text) {
  const std::uint64_t size = sum(me_ == 0 ? text.size() : 0);
  const SymmetricBuffer block(std::max<std::uint64_t>(size, 1));
  if (me_ == 0) {
    std::memcpy(block.data(), text.data(), text.size());
  }
  barrier();
  std::string all(size, '\0');
  require(weft_get(all.data(), block.data(), all.size(), 0));
  return all;
}

void Job::stop_loop(std::uint64_t round) const {
  for (std::uint32_t pe = 0; pe < pe_count_; ++pe) {
    post(kStopWord, WEFT_SIGNAL_SET, stop_value(round), pe);
  }
}

bool Job::is_stopped(std::uint64_t round) const {
  return weft_signal_fetch(words_->words() + kStopWord) == stop_value(round);
}

void require_pes(const Job& job, std::string_view benchmark, std::uint32_t least) {
  if (job.pe_count() < least) {
    throw JobError(
        fmt::format("{} needs {} PEs; start it with weft-run -n {}", benchmark, least, least),
        kStatusUsage);
  }
}

}  // namespace weft::perf
