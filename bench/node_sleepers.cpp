// What it costs PE 0 to write to a PE of its node that sleeps, against the same to one that is
// awake: PE 1 spins, waits in a barrier, or waits for another word. And how soon a sleeper answers
// who wrote its word. Start it with `weft-run -n 2 --bind core -- node_sleepers`. One JSON line per
// measurement.
#include <algorithm>
#include <array>
#include <chrono>
#include <cstdint>
#include <thread>

#include "tests/multi/programs/expect.h"

namespace {

using Clock = std::chrono::steady_clock;

constexpr std::size_t kRuns = 7;
constexpr std::size_t kCalls = 100'000;
constexpr std::size_t kAnswers = 101;
// Longer than a PE polls and yields before it sleeps.
constexpr std::chrono::milliseconds kUntilAsleep{5};

// Each on a cache line of its own, and so the words that programs wait for.
struct alignas(64) Word {
  std::uint64_t value;
  std::uint64_t unused[7];
};

struct Words {
  Word data;
  Word written;  // by PE 0 while PE 1 sleeps for something else
  Word awaited;
  Word answer;
};

double elapsed_ns(Clock::time_point start) {
  return std::chrono::duration<double, std::nano>(Clock::now() - start).count();
}

template <std::size_t kCount>
double median(std::array<double, kCount>& values) {
  std::ranges::nth_element(values, values.begin() + kCount / 2);
  return values[kCount / 2];
}

template <typename Body>
void measure(const char* target, const char* name, std::size_t bytes, Body&& body) {
  std::array<double, kRuns> runs{};
  for (double& run : runs) {
    const auto start = Clock::now();
    for (std::size_t i = 0; i < kCalls; ++i) {
      body(i);
    }
    run = elapsed_ns(start) / kCalls;
  }
  std::printf("{\"name\": \"%s\", \"bytes\": %zu, \"target\": \"%s\", \"ns\": %.2f}\n", name, bytes,
              target, median(runs));
  std::fflush(stdout);
}

void measure_calls(Words* words, const char* target) {
  const std::array<std::uint64_t, 8> source{};
  auto* number = reinterpret_cast<std::int64_t*>(&words->written.value);
  const weft_signal one{&words->written.value, 1, WEFT_SIGNAL_ADD};
  const weft_signal set{&words->written.value, 1, WEFT_SIGNAL_SET};
  std::this_thread::sleep_for(10 * kUntilAsleep);
  measure(target, "put_quiet", 8, [&](std::size_t) {
    weft_put(&words->data, source.data(), 8, 1);
    weft_quiet();
  });
  measure(target, "p", 8, [&](std::size_t i) { weft_int64_p(number, static_cast<int64_t>(i), 1); });
  measure(target, "put", 8, [&](std::size_t) { weft_put(number, source.data(), 8, 1); });
  for (const std::size_t bytes : {8UL, 64UL}) {
    measure(target, "put_signal", bytes,
            [&](std::size_t) { weft_put_signal(&words->data, source.data(), bytes, set, 1); });
  }
  measure(target, "put_signal_add", 8,
          [&](std::size_t) { weft_put_signal(&words->data, source.data(), 8, one, 1); });
  measure(target, "signal", 8, [&](std::size_t) { weft_signal_post(set, 1); });
  measure(target, "add", 8, [&](std::size_t) { weft_int64_atomic_add(number, 1, 1); });
  measure(target, "fetch_add", 8, [&](std::size_t) { weft_int64_atomic_fetch_add(number, 1, 1); });
}

// From the call to the answer of a PE that slept until then.
template <typename Write>
void measure_answers(Words* words, std::uint64_t& round, const char* name, Write&& write) {
  std::array<double, kAnswers> times{};
  for (double& time : times) {
    std::this_thread::sleep_for(kUntilAsleep);
    const auto start = Clock::now();
    write(++round);
    while (weft_signal_fetch(&words->answer.value) < round) {
    }
    time = elapsed_ns(start);
  }
  std::printf(
      "{\"name\": \"answer_to_%s\", \"bytes\": 8, \"target\": \"asleep\", \"ns\": %.0f, "
      "\"longest_ns\": %.0f}\n",
      name, median(times), *std::ranges::max_element(times));
}

void write_and_wait(Words* words) {
  auto* number = reinterpret_cast<std::int64_t*>(&words->awaited.value);
  std::uint64_t* word = &words->awaited.value;
  std::uint64_t round = 0;
  measure_answers(words, round, "p", [&](std::uint64_t value) {
    weft_int64_p(number, static_cast<std::int64_t>(value), 1);
  });
  measure_answers(words, round, "put",
                  [&](std::uint64_t value) { weft_put(number, &value, 8, 1); });
  measure_answers(words, round, "add", [&](std::uint64_t) { weft_int64_atomic_add(number, 1, 1); });
  measure_answers(words, round, "signal", [&](std::uint64_t value) {
    weft_signal_post({word, value, WEFT_SIGNAL_SET}, 1);
  });
}

void answer_all(Words* words) {
  for (std::uint64_t round = 1; round <= 4 * kAnswers; ++round) {
    WEFT_EXPECT_OK(weft_signal_wait_until(&words->awaited.value, WEFT_GE, round, nullptr));
    weft_signal_post({&words->answer.value, round, WEFT_SIGNAL_SET}, 0);
  }
}

}  // namespace

int main() {
  WEFT_EXPECT_OK(weft_init());
  auto* words = static_cast<Words*>(weft_calloc(1, sizeof(Words)));
  WEFT_EXPECT(words != nullptr && weft_pe_count() == 2);
  std::uint64_t* awaited = &words->awaited.value;
  const bool is_writer = weft_pe() == 0;
  if (is_writer) {
    measure_calls(words, "awake");
    weft_signal_post({awaited, 1, WEFT_SIGNAL_SET}, 1);
    measure_calls(words, "in a barrier");
  } else {
    while (weft_signal_fetch(awaited) < 1) {
    }
  }
  WEFT_EXPECT_OK(weft_barrier_all());
  if (is_writer) {
    measure_calls(words, "in a wait for another word");
    weft_signal_post({awaited, 2, WEFT_SIGNAL_SET}, 1);
  } else {
    WEFT_EXPECT_OK(weft_signal_wait_until(awaited, WEFT_EQ, 2, nullptr));
    *awaited = 0;
  }
  WEFT_EXPECT_OK(weft_barrier_all());
  if (is_writer) {
    write_and_wait(words);
  } else {
    answer_all(words);
  }
  return weft_finalize();
}
