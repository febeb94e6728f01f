// putv in all its forms: each segment is in its place, nothing beside, and whoever sees the signal
// sees all of them.
#include "tests/device/device_tools.cuh"

namespace {

namespace wd = weft::device;

using suite::Array;
using suite::Finding;

// Where the lists come from.
enum class Lists { Global, Shared };

// A list for each scope and message. The rows of a message lie behind each other in `drafts`, and
// in every second row's place of `inbox`, in reverse order.
struct Talk {
  std::uint32_t* inbox;   // symmetric
  std::uint32_t* drafts;  // own
  std::uint64_t* words;   // symmetric
  wd::Segment* lists;     // own
  std::uint32_t messages, rows, row_length;
  int to, from;
  std::uint64_t seed;
};

inline __device__ std::uint32_t length_of(const Talk& talk,
                                          std::uint32_t message,
                                          std::uint32_t row,
                                          int sender) {
  return static_cast<std::uint32_t>(
      suite::random_at(talk.seed + 2, sender, std::uint64_t{message} << 20U | row) %
      (talk.row_length + 1));
}

inline __device__ std::uint32_t element(const Talk& talk,
                                        std::uint64_t place,
                                        std::uint32_t i,
                                        int sender) {
  // Never 0, which is what lies beside.
  return static_cast<std::uint32_t>(suite::random_at(talk.seed, sender, place << 20U | i)) | 1U;
}

inline __device__ std::uint32_t* place_of(const Talk& talk,
                                          std::uint32_t message,
                                          std::uint32_t row) {
  return talk.inbox +
         (std::size_t{message} * talk.rows + (talk.rows - 1 - row)) * 2 * talk.row_length;
}

template <typename Scope>
__device__ void write_list(const Talk& talk, std::uint32_t message, wd::Segment* list) {
  for (std::uint32_t row = 0; row < talk.rows; ++row) {
    const std::uint64_t place = std::uint64_t{message} * talk.rows + row;
    const std::uint32_t length = length_of(talk, message, row, wd::pe());
    std::uint32_t* draft = talk.drafts + place * talk.row_length;
    for (std::uint32_t i = Scope::rank(); i < length; i += Scope::size()) {
      draft[i] = element(talk, place, i, wd::pe());
    }
    if (wd::is_leader<Scope>()) {
      list[row] = {place_of(talk, message, row), draft, length * sizeof(std::uint32_t)};
    }
  }
  Scope::sync();
}

// With `kSignals` each list has its signal; otherwise one follows after quiet.
template <typename Scope, bool kNbi, bool kSignals>
__device__ void send(const Talk& talk, std::uint32_t first, wd::Segment* shared) {
  for (std::uint32_t m = first; m < first + talk.messages; ++m) {
    wd::Segment* list = shared != nullptr ? shared : talk.lists + std::size_t{m} * talk.rows;
    write_list<Scope>(talk, m, list);
    const wd::Signal signal{talk.words + m, 1, wd::SignalOp::Add};
    if constexpr (kSignals && kNbi) {
      wd::putv_signal_nbi<Scope>(list, talk.rows, signal, talk.to);
    } else if constexpr (kSignals) {
      wd::putv_signal<Scope>(list, talk.rows, signal, talk.to);
    } else if constexpr (kNbi) {
      wd::putv_nbi<Scope>(list, talk.rows, talk.to);
    } else {
      wd::putv<Scope>(list, talk.rows, talk.to);
    }
    if constexpr (!kNbi) {  // the source may be written, and the list in either form
      for (std::uint32_t i = Scope::rank(); i < talk.rows * talk.row_length; i += Scope::size()) {
        talk.drafts[std::size_t{m} * talk.rows * talk.row_length + i] = 0;
      }
    }
    for (std::uint32_t row = Scope::rank(); row < talk.rows; row += Scope::size()) {
      list[row] = {nullptr, nullptr, 8};
    }
    Scope::sync();
  }
  wd::quiet();
  if constexpr (!kSignals) {
    Scope::sync();
    for (std::uint32_t m = first + Scope::rank(); m < first + talk.messages; m += Scope::size()) {
      wd::signal({talk.words + m, 1, wd::SignalOp::Add}, talk.to);
    }
  }
}

template <typename Scope>
__device__ void receive(const Talk& talk, std::uint32_t first, Finding* finding) {
  for (std::uint32_t m = first; m < first + talk.messages; ++m) {
    wd::signal_wait_until<Scope>(talk.words + m, wd::Comparison::Eq, 1);
    for (std::uint32_t row = 0; row < talk.rows; ++row) {
      const std::uint64_t place = std::uint64_t{m} * talk.rows + row;
      const std::uint32_t length = length_of(talk, m, row, talk.from);
      const std::uint32_t* here = place_of(talk, m, row);
      for (std::uint32_t i = Scope::rank(); i < 2 * talk.row_length; i += Scope::size()) {
        suite::expect_equal(finding, place << 20U | i,
                            i < length ? element(talk, place, i, talk.from) : 0, here[i]);
      }
    }
  }
}

// Even blocks send, odd ones receive.
template <typename Scope, bool kNbi, bool kSignals, Lists kLists>
__global__ void talk_both_ways(Talk talk, Finding* finding) {
  constexpr std::uint32_t kSharedRows = 64;
  __shared__ wd::Segment shared[kLists == Lists::Shared ? kSharedRows : 1];
  const std::uint32_t per_block = suite::groups<Scope>(1, blockDim.x);
  const std::uint32_t in_block = suite::group<Scope>() % per_block;
  const std::uint32_t first = ((blockIdx.x / 2) * per_block + in_block) * talk.messages;
  if (blockIdx.x % 2 == 0) {
    send<Scope, kNbi, kSignals>(talk, first,
                                kLists == Lists::Shared ? shared + in_block * talk.rows : nullptr);
  } else {
    receive<Scope>(talk, first, finding);
  }
}

struct Amount {
  double messages;
  std::uint32_t rows, row_length;
};

template <typename Scope, bool kNbi, bool kSignals, Lists kLists>
void converse(const char* name, Amount amount) {
  constexpr std::uint32_t kPairs = 4;
  constexpr std::uint32_t kThreads = 64;
  const std::uint32_t scopes = suite::groups<Scope>(kPairs, kThreads);
  const std::uint32_t messages = suite::rounds(amount.messages, scopes) / scopes;
  const std::size_t all = std::size_t{messages} * scopes;
  Array<std::uint32_t> inbox(all * amount.rows * amount.row_length * 2);
  const Array<std::uint32_t> drafts(all * amount.rows * amount.row_length, suite::Where::Own);
  const Array<wd::Segment> lists(all * amount.rows, suite::Where::Own);
  Array<std::uint64_t> words(all);
  const suite::Findings findings;
  for (int d = 0; d < suite::pe_count(); ++d) {
    inbox.fill(0);
    words.fill(0);
    suite::require_weft(weft_barrier_all(), name);
    talk_both_ways<Scope, kNbi, kSignals, kLists><<<2 * kPairs, kThreads>>>(
        {inbox.get(), drafts.get(), words.get(), lists.get(), messages, amount.rows,
         amount.row_length, suite::to_at(d), suite::from_at(d),
         suite::seed() + static_cast<std::uint64_t>(d)},
        findings.get());
    suite::finish(name);
    findings.report(name);
  }
}

template <bool kNbi, bool kSignals>
void converse_in_all_scopes() {
  constexpr Lists kGlobal = Lists::Global;
  converse<wd::Thread, kNbi, kSignals, kGlobal>("thread", {2560, 25, 20});
  converse<wd::Warp, kNbi, kSignals, kGlobal>("warp", {800, 40, 90});
  converse<wd::Block, kNbi, kSignals, kGlobal>("block", {400, 64, 150});
  converse<wd::Thread, kNbi, kSignals, kGlobal>("thread, long rows", {256, 3, 1500});
  converse<wd::Warp, kNbi, kSignals, kGlobal>("warp, long rows", {64, 30, 3600});
  converse<wd::Block, kNbi, kSignals, kGlobal>("block, long rows", {32, 50, 3600});
  converse<wd::Block, kNbi, kSignals, kGlobal>("block, one row", {64, 1, 9000});
  converse<wd::Warp, kNbi, kSignals, Lists::Shared>("warp, list in shared memory", {400, 32, 200});
  converse<wd::Block, kNbi, kSignals, Lists::Shared>("block, list in shared memory",
                                                     {200, 64, 200});
}

DEVICE_TEST(waiting, "putv: each segment is in its place, and nothing beside") {
  converse_in_all_scopes<false, false>();
}

DEVICE_TEST(nbi, "putv_nbi: each segment is in its place after quiet") {
  converse_in_all_scopes<true, false>();
}

DEVICE_TEST(signal, "putv_signal: who sees the word sees all segments") {
  converse_in_all_scopes<false, true>();
}

DEVICE_TEST(signal_nbi, "putv_signal_nbi: who sees the word sees all segments") {
  converse_in_all_scopes<true, true>();
}

// ---- Sources that no proxy can reach, and lists of nothing

__global__ void put_from_shared(std::uint32_t* dest, std::uint64_t* word, int to) {
  constexpr std::uint32_t kRows = 30;
  constexpr std::uint32_t kLength = 120;  // of as many bytes as are carried
  __shared__ std::uint32_t rows[kRows][kLength];
  __shared__ wd::Segment list[kRows];
  for (std::uint32_t i = threadIdx.x; i < kRows * kLength; i += blockDim.x) {
    rows[i / kLength][i % kLength] = i + 1;
  }
  for (std::uint32_t row = threadIdx.x; row < kRows; row += blockDim.x) {
    list[row] = {dest + row * kLength, rows[row], sizeof(rows[row])};
  }
  __syncthreads();
  wd::putv_signal<wd::Block>(list, kRows, {word, 1, wd::SignalOp::Add}, to);
  wd::putv_signal<wd::Block>(list, 0, {word + 1, 5, wd::SignalOp::Set}, to);
  wd::putv<wd::Block>(list, 0, to);
  wd::signal_wait_until<wd::Block>(word, wd::Comparison::Eq, 1);
  wd::signal_wait_until<wd::Block>(word + 1, wd::Comparison::Eq, 5);
}

__global__ void check_rows(const std::uint32_t* dest, Finding* finding) {
  for (std::uint32_t i = threadIdx.x; i < 3600; i += blockDim.x) {
    suite::expect_equal(finding, i, i + 1, dest[i]);
  }
}

DEVICE_TEST(shared_rows,
            "putv takes short rows from shared memory; of an empty list only the signal goes") {
  const Array<std::uint32_t> dest(3600);
  const Array<std::uint64_t> words(2);
  const suite::Findings findings;
  suite::require_weft(weft_barrier_all(), "before");
  put_from_shared<<<1, 96>>>(dest.get(), words.get(), suite::to_at(1));
  suite::finish("put");
  check_rows<<<1, 96>>>(dest.get(), findings.get());
  suite::finish("check");
  findings.report("rows");
}

// ---- Lists of segments that are not alike

struct Rows {
  std::uint32_t count;
  std::uint32_t long_row;  // the one that is not like the others
  std::uint32_t long_length, length;

  [[nodiscard]] __device__ __host__ std::uint32_t length_of(std::uint32_t row) const {
    return row == long_row ? long_length : length;
  }

  // With a gap behind each.
  [[nodiscard]] __device__ __host__ std::uint32_t start_of(std::uint32_t row) const {
    return row * (length + 1) + (row > long_row ? long_length - length : 0);
  }
};

template <typename Scope>
__global__ void put_rows(std::uint32_t* dest,
                         const std::uint32_t* source,
                         wd::Segment* list,
                         std::uint64_t* word,
                         Rows rows,
                         int to) {
  if (threadIdx.x >= Scope::size()) {
    return;
  }
  for (std::uint32_t row = Scope::rank(); row < rows.count; row += Scope::size()) {
    list[row] = {dest + rows.start_of(row), source + rows.start_of(row),
                 rows.length_of(row) * sizeof(std::uint32_t)};
  }
  Scope::sync();
  wd::putv_signal<Scope>(list, rows.count, {word, 1, wd::SignalOp::Add}, to);
  wd::signal_wait_until<Scope>(word, wd::Comparison::Eq, 1);
}

template <typename Scope>
void put_uneven(const char* name, Rows rows) {
  const std::uint32_t all = rows.start_of(rows.count);
  const Array<std::uint32_t> dest(all);
  Array<std::uint32_t> source(all, suite::Where::Own);
  const Array<wd::Segment> list(rows.count, suite::Where::Own);
  const Array<std::uint64_t> word(1);
  std::vector<std::uint32_t> values(all);
  for (std::uint32_t i = 0; i < all; ++i) {
    values[i] = i + 1;
  }
  source.write(values);
  suite::require_weft(weft_barrier_all(), name);
  put_rows<Scope>
      <<<1, 256>>>(dest.get(), source.get(), list.get(), word.get(), rows, suite::to_at(1));
  suite::finish(name);
  const std::vector<std::uint32_t> seen = dest.read();
  for (std::uint32_t row = 0; row < rows.count; ++row) {
    for (std::uint32_t i = 0; i <= rows.length_of(row); ++i) {
      const std::uint32_t at = rows.start_of(row) + i;
      if (seen[at] != (i < rows.length_of(row) ? at + 1 : 0)) {
        suite::fail("%s: element %u of row %u is %u", name, i, row, seen[at]);
        return;
      }
    }
  }
}

template <typename Scope>
void put_all_uneven(const char* name) {
  for (const std::uint32_t long_row : {0U, 7U, 39U}) {
    put_uneven<Scope>(name, {40, long_row, 20'000, 4});  // one is long
    put_uneven<Scope>(name, {40, long_row, 1, 3000});    // one is short
    put_uneven<Scope>(name, {40, long_row, 20'000, 0});  // the others are empty
  }
}

DEVICE_TEST(uneven, "putv: one segment that is not like the others") {
  put_all_uneven<wd::Thread>("thread");
  put_all_uneven<wd::Warp>("warp");
  put_all_uneven<wd::Block>("block");
}

}  // namespace
