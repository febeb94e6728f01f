// What wakes a PE that sleeps, between processes: PE 0 looks at the bell of PE 1 of its node, waits
// until it sleeps, writes, and looks how often it rang. No times are looked at. Prints one line, or
// what was wrong.
#include <weft/weft.h>

#include <algorithm>
#include <cstdint>
#include <thread>

#include <fmt/format.h>

#include "src/api/process.hpp"
#include "src/collectives/control.hpp"
#include "tests/multi/programs/expect.h"

namespace {

using weft::AtomicRef;
using weft::Pe;
using weft::WordBell;
using weft::WordPlace;

constexpr int kSleeper = 1;

// On pages of their own, at different places of them.
struct Words {
  alignas(4096) std::uint64_t data[8];
  alignas(4096) std::uint64_t other[16];  // none of them is waited for where `awaited` is
  alignas(4096) std::uint64_t unused[64];
  std::uint64_t awaited[32];
};

WordBell& bell_of_sleeper() {
  return *reinterpret_cast<WordBell*>(weft::api::current()->heap().mapped_base(Pe(kSleeper)));
}

// relaxed, here and below: the other process only adds; nothing is read on their strength.
std::uint32_t rings() {
  return AtomicRef(bell_of_sleeper().bell.rings).load(std::memory_order_relaxed);
}

void await_sleep_for(WordPlace place) {
  while (AtomicRef(bell_of_sleeper().raised[place.value]).load(std::memory_order_relaxed) == 0) {
    std::this_thread::yield();
  }
}

void await_sleep_for(const std::uint64_t* word) {
  await_sleep_for(weft::api::current()->doorbells().place_of(word, Pe(kSleeper)));
}

bool is_right = true;

void expect_rings(std::uint32_t before, std::uint32_t more, const char* what) {
  const std::uint32_t seen = rings() - before;
  if (seen != more) {
    is_right = false;
    fmt::print(stderr, "{}: rang {} times, not {}\n", what, seen, more);
  }
}

// All ways to write, to words that nobody waits for.
void write_elsewhere(Words* words) {
  for (std::uint64_t i = 0; i < 1000; ++i) {
    std::uint64_t* word = words->other + i % 16;
    auto* number = reinterpret_cast<std::int64_t*>(word);
    weft_put_signal(words->data, words->other, 64, {word, i, WEFT_SIGNAL_SET}, kSleeper);
    weft_put_signal(words->data, words->other, 8, {word, 1, WEFT_SIGNAL_ADD}, kSleeper);
    weft_signal_post({word, i, WEFT_SIGNAL_SET}, kSleeper);
    weft_int64_atomic_add(number, 1, kSleeper);
    weft_int64_atomic_fetch_add(number, 1, kSleeper);
    weft_int64_atomic_compare_swap(number, 0, 1, kSleeper);
    weft_int64_p(number, 1, kSleeper);
    weft_put(word, &i, sizeof i, kSleeper);
    weft_put(words->data, words->other, sizeof words->data, kSleeper);
  }
}

void write_word(std::uint64_t* word, std::uint64_t way, std::uint64_t value) {
  auto* number = reinterpret_cast<std::int64_t*>(word);
  const auto integer = static_cast<std::int64_t>(value);
  switch (way) {
    case 0:
      WEFT_EXPECT_OK(weft_put(word, &value, sizeof value, kSleeper));
      break;
    case 1:
      WEFT_EXPECT_OK(weft_int64_p(number, integer, kSleeper));
      break;
    case 2:
      WEFT_EXPECT_OK(weft_int64_atomic_add(number, integer, kSleeper));
      break;
    case 3:
      WEFT_EXPECT_OK(weft_int64_atomic_set(number, integer, kSleeper));
      break;
    case 4:
      weft_int64_atomic_fetch_add(number, integer, kSleeper);
      break;
    case 5:
      weft_int64_atomic_compare_swap(number, 0, integer, kSleeper);
      break;
    case 6:
      WEFT_EXPECT_OK(weft_signal_post({word, value, WEFT_SIGNAL_SET}, kSleeper));
      break;
    default:
      WEFT_EXPECT_OK(weft_put_signal(word + 1, &value, sizeof value, {word, value, WEFT_SIGNAL_SET},
                                     kSleeper));
  }
}

constexpr std::uint64_t kWays = 8;

// A wait for each way to write, and one for any of three words.
void wake(Words* words) {
  for (std::uint64_t way = 0; way < kWays; ++way) {
    std::uint64_t* word = words->awaited + 2 * way;
    await_sleep_for(word);
    const std::uint32_t before = rings();
    write_elsewhere(words);
    expect_rings(before, 0, "writes to other words");
    write_word(word, way, way + 1);
    expect_rings(before, 1, "a write to the word");
  }
  const std::uint64_t one = 1;
  await_sleep_for(words->awaited + 18);
  const std::uint32_t before = rings();
  WEFT_EXPECT_OK(weft_put(words->awaited + 17, &one, sizeof one, kSleeper));
  expect_rings(before, 1, "a write to one of three words");
}

void sleep_for_each(Words* words) {
  for (std::uint64_t way = 0; way < kWays; ++way) {
    WEFT_EXPECT_OK(weft_signal_wait_until(words->awaited + 2 * way, WEFT_EQ, way + 1, nullptr));
  }
  const std::size_t found = weft_uint64_wait_until_any(words->awaited + 16, 3, nullptr, WEFT_EQ, 1);
  WEFT_EXPECT(found == 1);
}

// PE 1 is in a barrier and waits for PE 0.
void wake_from_barrier(Words* words) {
  const auto* control = reinterpret_cast<const weft::collectives::HeapControl*>(
      weft::api::current()->heap().control());
  const auto& published = control->teams[0].control.published;
  // The call that comes next.
  const std::uint64_t next = std::max(published[0].position, published[1].position) + 1;
  await_sleep_for(weft::api::current()->doorbells().place_of(&published[next % 2].position, Pe(0)));
  const std::uint32_t before = rings();
  write_elsewhere(words);
  expect_rings(before, 0, "writes while it is in a barrier");
  WEFT_EXPECT_OK(weft_barrier_all());
  expect_rings(before, 1, "the barrier itself");
}

}  // namespace

int main() {
  WEFT_EXPECT_OK(weft_init());
  auto* words = static_cast<Words*>(weft_align(4096, sizeof(Words)));
  WEFT_EXPECT(words != nullptr && weft_pe_count() == 2);
  *words = {};
  WEFT_EXPECT_OK(weft_barrier_all());
  const bool is_sleeper = weft_pe() == kSleeper;
  if (is_sleeper) {
    sleep_for_each(words);
    WEFT_EXPECT_OK(weft_barrier_all());
  } else {
    wake(words);
    wake_from_barrier(words);
  }
  WEFT_EXPECT_OK(weft_finalize());
  if (!is_sleeper && is_right) {
    fmt::print("wakeups ok\n");
  }
  return is_right ? 0 : 1;
}
