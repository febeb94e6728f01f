// put_signal and signal: whoever sees the word sees the data; many on one word add up.
#include "tests/device/device_tools.cuh"

namespace {

namespace wd = weft::device;

using suite::Array;
using suite::Finding;

// A conversation: this PE's messages to `to`, and those that come from `from`. Each message has a
// place and a word of its own, so none waits for an answer.
struct Talk {
  std::uint32_t* inbox;    // symmetric: a place for each message
  std::uint32_t* drafts;   // a place for each message, filled by its sender
  std::uint64_t* words;    // symmetric
  std::uint32_t messages;  // of each scope
  std::uint32_t length;    // elements of a place
  int to, from;
  std::uint64_t seed;
  wd::SignalOp op;
};

inline constexpr std::uint64_t kBefore = 1000;  // in each word at first

inline __device__ std::uint64_t word_value(const Talk& talk, std::uint32_t message, int sender) {
  return kBefore + 1 + suite::random_at(talk.seed + 1, sender, message) % 1000000;
}

inline __device__ std::uint32_t length_of(const Talk& talk, std::uint32_t message, int sender) {
  return static_cast<std::uint32_t>(suite::random_at(talk.seed + 2, sender, message) %
                                    (talk.length + 1));
}

inline __device__ std::uint32_t element(const Talk& talk,
                                        std::uint32_t message,
                                        int sender,
                                        std::uint32_t i) {
  return static_cast<std::uint32_t>(
      suite::random_at(talk.seed, sender, std::uint64_t{message} << 20U | i));
}

template <typename Scope, bool kNbi>
__device__ void send(const Talk& talk, std::uint32_t first) {
  for (std::uint32_t m = first; m < first + talk.messages; ++m) {
    const std::uint32_t length = length_of(talk, m, wd::pe());
    std::uint32_t* draft = talk.drafts + std::size_t{m} * talk.length;
    for (std::uint32_t i = Scope::rank(); i < length; i += Scope::size()) {
      draft[i] = element(talk, m, wd::pe(), i);
    }
    Scope::sync();
    std::uint32_t* place = talk.inbox + std::size_t{m} * talk.length;
    const wd::Signal signal{talk.words + m, word_value(talk, m, wd::pe()), talk.op};
    if constexpr (kNbi) {
      wd::put_signal_nbi<Scope>(place, draft, length, signal, talk.to);
    } else {
      wd::put_signal<Scope>(place, draft, length, signal, talk.to);
    }
  }
  wd::quiet();
}

template <typename Scope>
__device__ void receive(const Talk& talk, std::uint32_t first, Finding* finding) {
  for (std::uint32_t m = first; m < first + talk.messages; ++m) {
    const std::uint64_t value = word_value(talk, m, talk.from);
    const std::uint64_t expected = talk.op == wd::SignalOp::Add ? kBefore + value : value;
    wd::signal_wait_until<Scope>(talk.words + m, wd::Comparison::Ne, kBefore);
    suite::expect_equal(finding, m, expected, wd::signal_fetch(talk.words + m));
    const std::uint32_t length = length_of(talk, m, talk.from);
    const std::uint32_t* place = talk.inbox + std::size_t{m} * talk.length;
    for (std::uint32_t i = Scope::rank(); i < length; i += Scope::size()) {
      suite::expect_equal(finding, std::uint64_t{m} << 20U | i, element(talk, m, talk.from, i),
                          place[i]);
    }
  }
}

// Even blocks send, odd ones receive.
template <typename Scope, bool kNbi>
__global__ void talk_both_ways(Talk talk, Finding* finding) {
  const std::uint32_t per_block = suite::groups<Scope>(1, blockDim.x);
  const std::uint32_t in_block = suite::group<Scope>() % per_block;
  const std::uint32_t first = ((blockIdx.x / 2) * per_block + in_block) * talk.messages;
  if (blockIdx.x % 2 == 0) {
    send<Scope, kNbi>(talk, first);
  } else {
    receive<Scope>(talk, first, finding);
  }
}

struct Amount {
  double messages;
  std::uint32_t length;
};

template <typename Scope, bool kNbi>
void converse(const char* name, wd::SignalOp op, Amount amount) {
  constexpr std::uint32_t kPairs = 4;
  constexpr std::uint32_t kThreads = 64;
  const std::uint32_t scopes = suite::groups<Scope>(kPairs, kThreads);
  const std::uint32_t messages = suite::rounds(amount.messages, scopes) / scopes;
  const std::size_t all = std::size_t{messages} * scopes;
  const Array<std::uint32_t> inbox(all * amount.length);
  const Array<std::uint32_t> drafts(all * amount.length, suite::Where::Own);
  Array<std::uint64_t> words(all);
  const suite::Findings findings;
  for (int d = 0; d < suite::pe_count(); ++d) {
    words.write(std::vector<std::uint64_t>(all, kBefore));
    suite::require_weft(weft_barrier_all(), name);
    talk_both_ways<Scope, kNbi><<<2 * kPairs, kThreads>>>(
        {inbox.get(), drafts.get(), words.get(), messages, amount.length, suite::to_at(d),
         suite::from_at(d), suite::seed() + static_cast<std::uint64_t>(d), op},
        findings.get());
    suite::finish(name);
    findings.report(name);
  }
}

template <bool kNbi>
void converse_in_all_scopes(wd::SignalOp op) {
  converse<wd::Thread, kNbi>("thread", op, {100000, 16});
  converse<wd::Warp, kNbi>("warp", op, {100000, 16});
  converse<wd::Block, kNbi>("block", op, {20000, 16});
  converse<wd::Thread, kNbi>("thread, long", op, {512, 3000});
  converse<wd::Warp, kNbi>("warp, long", op, {256, 9000});
  converse<wd::Block, kNbi>("block, long", op, {128, 40000});
}

DEVICE_TEST(set, "put_signal that sets: who sees the word sees the data") {
  converse_in_all_scopes<false>(wd::SignalOp::Set);
}

DEVICE_TEST(add, "put_signal that adds: who sees the word sees the data") {
  converse_in_all_scopes<false>(wd::SignalOp::Add);
}

DEVICE_TEST(set_nbi, "put_signal_nbi that sets: who sees the word sees the data") {
  converse_in_all_scopes<true>(wd::SignalOp::Set);
}

DEVICE_TEST(add_nbi, "put_signal_nbi that adds: who sees the word sees the data") {
  converse_in_all_scopes<true>(wd::SignalOp::Add);
}

// ---- Answering each other

struct Rally {
  std::uint32_t* dest;
  std::uint32_t* source;
  std::uint64_t* word;
  std::uint32_t length, rounds;
  int peer;
  bool serves;
};

// What came is of this round, though it lies where that of the last round lay.
template <typename Scope>
__device__ void check_round(const Rally& r, std::uint32_t round, Finding* finding) {
  for (std::uint32_t i = Scope::rank(); i < r.length; i += Scope::size()) {
    suite::expect_equal(finding, round, round + i, r.dest[i]);
  }
  Scope::sync();
}

template <typename Scope>
__global__ void rally(Rally r, Finding* finding) {
  for (std::uint32_t round = 1; round <= r.rounds; ++round) {
    if (!r.serves) {
      wd::signal_wait_until<Scope>(r.word, wd::Comparison::Ge, round);
      check_round<Scope>(r, round, finding);
    }
    for (std::uint32_t i = Scope::rank(); i < r.length; i += Scope::size()) {
      r.source[i] = round + i;
    }
    Scope::sync();
    wd::put_signal<Scope>(r.dest, r.source, r.length, {r.word, 1, wd::SignalOp::Add}, r.peer);
    if (r.serves) {
      wd::signal_wait_until<Scope>(r.word, wd::Comparison::Ge, round);
      check_round<Scope>(r, round, finding);
    }
  }
  wd::quiet();
}

template <typename Scope>
void rally_in_scope(const char* name, std::uint32_t threads) {
  constexpr std::uint32_t kLength = 300;
  const Array<std::uint32_t> dest(kLength);
  const Array<std::uint32_t> source(kLength, suite::Where::Own);
  const Array<std::uint64_t> word(1);
  const suite::Findings findings;
  const int peer = suite::me() ^ 1;
  if (peer < suite::pe_count()) {
    const bool serves = suite::me() % 2 == 0;
    rally<Scope><<<1, threads>>>(
        {dest.get(), source.get(), word.get(), kLength, suite::turns(20000), peer, serves},
        findings.get());
  }
  suite::finish(name);
  findings.report(name);
}

DEVICE_TEST(ping_pong,
            "two PEs answer each other with put_signal into one place and see nothing stale") {
  if (suite::pe_count() < 2) {
    suite::skip("needs two PEs");
    return;
  }
  rally_in_scope<wd::Thread>("thread", 1);
  rally_in_scope<wd::Warp>("warp", 32);
  rally_in_scope<wd::Block>("block", 256);
}

// ---- Many on one word

struct Crowd {
  std::uint64_t* word;
  std::uint32_t* scratch;  // symmetric
  std::uint32_t each;      // signals of a thread
  std::uint64_t all;       // what the word comes to
};

// Everybody adds to the word of PE 0: by signal, put_signal and atomics in turn. PE 0 also waits
// there.
__global__ void add_to_one(Crowd crowd) {
  const std::uint32_t thread = blockIdx.x * blockDim.x + threadIdx.x;
  std::uint32_t* place = crowd.scratch + thread % 64;
  for (std::uint32_t i = 0; i < crowd.each; ++i) {
    if ((i + thread) % 3 == 0) {
      wd::put_signal(place, crowd.scratch + 64, 1, {crowd.word, 1, wd::SignalOp::Add}, 0);
    } else if ((i + thread) % 3 == 1) {
      wd::signal({crowd.word, 1, wd::SignalOp::Add}, 0);
    } else {
      wd::atomic_add(crowd.word, std::uint64_t{1}, 0);
    }
  }
  wd::quiet();
  if (wd::pe() == 0 && thread == 0) {
    wd::signal_wait_until(crowd.word, wd::Comparison::Ge, crowd.all);
  }
}

DEVICE_TEST(one_word, "signals and atomics of all PEs on one word of one PE add up exactly") {
  constexpr std::uint32_t kThreads = 256;
  const Array<std::uint64_t> word(1);
  const Array<std::uint32_t> scratch(65);
  const auto pes = static_cast<std::uint32_t>(suite::pe_count());
  const std::uint32_t each = suite::rounds(1e6, 1024) / (kThreads * pes) + 1;
  const std::uint64_t all = std::uint64_t{each} * kThreads * pes;
  add_to_one<<<8, kThreads / 8>>>({word.get(), scratch.get(), each, all});
  suite::finish("adding");
  const std::uint64_t got = word.read()[0];
  const std::uint64_t expected = suite::me() == 0 ? all : 0;
  if (got != expected) {
    suite::fail("the word is %llu, not %llu", static_cast<unsigned long long>(got),
                static_cast<unsigned long long>(expected));
  }
}

// ---- Data and flag in one

// In rounds: to the right, from the left. A word is written again after the right one has answered
// through the ring.
__global__ void pass_tagged(wd::Tagged* word, std::uint32_t rounds, Finding* finding) {
  const int right = (wd::pe() + 1) % wd::pe_count();
  const int left = (wd::pe() + wd::pe_count() - 1) % wd::pe_count();
  for (std::uint64_t round = 1; round <= rounds; ++round) {
    wd::put_tagged(word + round % 2, round * 1000 + static_cast<std::uint64_t>(wd::pe()), round,
                   right);
    const auto came = wd::tagged_wait<std::uint64_t>(word + round % 2, round);
    suite::expect_equal(finding, round, round * 1000 + static_cast<std::uint64_t>(left), came);
    wd::sync<wd::Thread, wd::Order::None>(wd::kWorld);
  }
  wd::quiet();
}

DEVICE_TEST(tagged,
            "put_tagged: who sees the tag has the data; with a sync that orders nothing between") {
  const Array<wd::Tagged> word(2);
  const suite::Findings findings;
  pass_tagged<<<1, 1>>>(word.get(), suite::turns(20000, 20), findings.get());
  suite::finish("tagged words");
  findings.report("tagged words");
}

}  // namespace
