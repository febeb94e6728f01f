// wait_until and test of one word and of several: every comparison, every type, with words left
// out.
#include <limits>

#include "tests/device/device_tools.cuh"

namespace {

namespace wd = weft::device;

using suite::Array;
using suite::Finding;
using wd::Comparison;

// A comparison that is false at first and true once the peer has written.
template <typename T>
struct Question {
  Comparison comparison;
  T first, written, value;
};

constexpr std::uint32_t kQuestions = 12;

// Around zero and at the ends of the type, where signed and unsigned differ.
template <typename T>
std::vector<Question<T>> questions() {
  constexpr bool kIsSigned = std::is_signed_v<T>;
  const T low = std::numeric_limits<T>::lowest();
  const T high = std::numeric_limits<T>::max();
  const T under = kIsSigned ? static_cast<T>(-1) : T{0};
  const T over = kIsSigned ? T{1} : high;
  return {{Comparison::Eq, 0, high, high},
          {Comparison::Eq, 5, low, low},
          {Comparison::Ne, 7, over, 7},
          {Comparison::Ne, high, 0, high},
          {Comparison::Gt, under, 1, 0},
          {Comparison::Gt, 1, high, 1},
          {Comparison::Ge, low, high, high},
          {Comparison::Ge, low, 3, 3},
          {Comparison::Lt, over, under, kIsSigned ? T{0} : T{2}},
          {Comparison::Lt, high, low, 1},
          {Comparison::Le, over, under, under},
          {Comparison::Le, high, low, low}};
}

template <typename Scope, typename T>
__global__ void ask(T* words, const Question<T>* questions, int to, Finding* finding) {
  if (blockIdx.x == 0) {
    for (std::uint32_t q = 0; q < kQuestions; ++q) {
      wd::wait_until<Scope>(words + q, questions[q].comparison, questions[q].value);
      if (Scope::rank() == 0) {
        suite::expect_equal(finding, q, 1,
                            wd::test(words + q, questions[q].comparison, questions[q].value));
        suite::expect_equal(finding, q, 1, wd::g(words + q, wd::pe()) == questions[q].written);
      }
    }
  } else if (threadIdx.x == 0) {
    for (std::uint32_t q = 0; q < kQuestions; ++q) {
      wd::p(words + q, questions[q].written, to);
    }
    wd::quiet();
  }
}

template <typename T>
__global__ void ask_before(const T* words, const Question<T>* questions, Finding* finding) {
  for (std::uint32_t q = 0; q < kQuestions; ++q) {
    suite::expect_equal(finding, q, 0,
                        wd::test(words + q, questions[q].comparison, questions[q].value));
  }
}

template <typename Scope, typename T>
void ask_in_scope(const char* name, std::uint32_t threads) {
  Array<T> words(kQuestions);
  Array<Question<T>> asked(kQuestions, suite::Where::Own);
  const suite::Findings findings;
  asked.write(questions<T>());
  std::vector<T> first;
  for (const Question<T>& question : questions<T>()) {
    first.push_back(question.first);
  }
  for (int d = 0; d < suite::pe_count(); ++d) {
    words.write(first);
    ask_before<<<1, 1>>>(words.get(), asked.get(), findings.get());
    suite::finish(name);
    ask<Scope><<<2, threads>>>(words.get(), asked.get(), suite::to_at(d), findings.get());
    suite::finish(name);
    findings.report(name);
  }
}

template <typename T>
void ask_in_all_scopes() {
  ask_in_scope<wd::Thread, T>("thread", 1);
  ask_in_scope<wd::Warp, T>("warp", 32);
  ask_in_scope<wd::Block, T>("block", 128);
}

DEVICE_TEST(comparisons_32,
            "wait_until and test: every comparison of 32-bit words, signed and not") {
  ask_in_all_scopes<std::int32_t>();
  ask_in_all_scopes<std::uint32_t>();
}

DEVICE_TEST(comparisons_64,
            "wait_until and test: every comparison of 64-bit words, signed and not") {
  ask_in_all_scopes<std::int64_t>();
  ask_in_all_scopes<std::uint64_t>();
}

// ---- Of several words

constexpr std::uint32_t kWords = 24;
constexpr int kFirst = 3;
constexpr int kWritten = 9;

struct Several {
  std::int32_t* words;
  const std::uint32_t* order;  // in which the peer writes them
  const int* left_out;         // status of each at first
  int* status;                 // scratch, as indices
  std::size_t* indices;
  int to;
};

// The peer writes every word, those that are left out first.
__device__ void write_in_order(const Several& s) {
  for (std::uint32_t i = 0; i < kWords; ++i) {
    wd::p(s.words + s.order[i], kWritten, s.to);
    wd::quiet();
  }
}

inline __device__ std::uint32_t reset_status(const Several& s) {
  std::uint32_t open = 0;
  for (std::uint32_t i = 0; i < kWords; ++i) {
    s.status[i] = s.left_out[i];
    open += s.left_out[i] == 0 ? 1 : 0;
  }
  return open;
}

__global__ void any_of(Several s, Finding* finding) {
  if (blockIdx.x != 0) {
    write_in_order(s);
    return;
  }
  for (std::uint32_t open = reset_status(s); open != 0; --open) {
    const std::size_t i = wd::wait_until_any(s.words, kWords, s.status, Comparison::Eq, kWritten);
    suite::expect_equal(finding, i, 1, i < kWords && s.status[i] == 0 ? 1 : 0);
    if (i < kWords) {
      s.status[i] = 1;
    }
  }
  suite::expect_equal(finding, 0, wd::kNone,
                      wd::wait_until_any(s.words, kWords, s.status, Comparison::Eq, kWritten));
  suite::expect_equal(finding, 1, wd::kNone,
                      wd::test_any(s.words, kWords, s.status, Comparison::Eq, kWritten));
}

__global__ void some_of(Several s, Finding* finding) {
  if (blockIdx.x != 0) {
    write_in_order(s);
    return;
  }
  std::uint32_t open = reset_status(s);
  while (open != 0) {
    const std::size_t found =
        wd::wait_until_some(s.words, kWords, s.indices, s.status, Comparison::Ne, kFirst);
    suite::expect_equal(finding, found, 1, found >= 1 && found <= open ? 1 : 0);
    for (std::size_t k = 0; k < found && open != 0; ++k) {
      suite::expect_equal(finding, s.indices[k], 0, s.status[s.indices[k]]);
      s.status[s.indices[k]] = 1;
      --open;
    }
  }
  suite::expect_equal(
      finding, 0, 0,
      wd::wait_until_some(s.words, kWords, s.indices, s.status, Comparison::Ne, kFirst));
  suite::expect_equal(finding, 1, 0,
                      wd::test_some(s.words, kWords, s.indices, s.status, Comparison::Ne, kFirst));
}

__global__ void all_of(Several s, Finding* finding) {
  if (blockIdx.x != 0) {
    write_in_order(s);
    return;
  }
  reset_status(s);
  wd::wait_until_all(s.words, kWords, s.status, Comparison::Ge, kWritten);
  for (std::uint32_t i = 0; i < kWords; ++i) {
    suite::expect_equal(finding, i, 1,
                        s.status[i] != 0 || wd::g(s.words + i, wd::pe()) == kWritten);
  }
  suite::expect_equal(finding, 0, 1,
                      wd::test_all(s.words, kWords, s.status, Comparison::Ge, kWritten));
  const int* none = nullptr;
  wd::wait_until_all(s.words, kWords, none, Comparison::Ge, kWritten);
  suite::expect_equal(finding, 1, 0, wd::test_all(s.words, kWords, none, Comparison::Ne, kWritten));
  suite::expect_equal(finding, 2, 0, wd::test_any(s.words, kWords, none, Comparison::Eq, kWritten));
  suite::expect_equal(finding, 3, kWords,
                      wd::test_some(s.words, kWords, s.indices, none, Comparison::Eq, kWritten));
}

using Kernel = void (*)(Several, Finding*);

void of_several(Kernel kernel) {
  Array<std::int32_t> words(kWords);
  Array<std::uint32_t> order(kWords, suite::Where::Own);
  Array<int> left_out(kWords, suite::Where::Own);
  const Array<int> status(kWords, suite::Where::Own);
  const Array<std::size_t> indices(kWords, suite::Where::Own);
  const suite::Findings findings;
  for (int d = 0; d < suite::pe_count(); ++d) {
    const std::uint64_t random = suite::random_of(suite::seed() + static_cast<std::uint64_t>(d));
    std::vector<std::uint32_t> places(kWords);
    std::vector<int> out(kWords);
    for (std::uint32_t i = 0; i < kWords; ++i) {
      places[i] = (i * 7 + static_cast<std::uint32_t>(random % kWords)) % kWords;  // 7: prime to 24
      out[i] = random >> (i + 8) & 1U ? 0 : 1;
    }
    out[0] = 0;
    order.write(places);
    left_out.write(out);
    words.write(std::vector<std::int32_t>(kWords, kFirst));
    suite::require_weft(weft_barrier_all(), "all have written");
    kernel<<<2, 1>>>(
        {words.get(), order.get(), left_out.get(), status.get(), indices.get(), suite::to_at(d)},
        findings.get());
    suite::finish("two blocks");
    findings.report("words");
  }
}

DEVICE_TEST(any,
            "wait_until_any and test_any name each word once and leave out what the status says") {
  of_several(&any_of);
}

DEVICE_TEST(
    some, "wait_until_some and test_some name each word once and leave out what the status says") {
  of_several(&some_of);
}

DEVICE_TEST(
    all,
    "wait_until_all and test_all: all that are not left out, and the others without a status") {
  of_several(&all_of);
}

}  // namespace
