// The bells by which PEs of a node wake each other: no ring is missed. src/base/bell.cpp and
// word_bell.cpp restated over the model's futex, which no timeout ends, so that a missed ring is a
// wait without end.
#include "src/base/bell.hpp"

#include <gtest/gtest.h>

#include <cstdint>
#include <functional>
#include <utility>
#include <vector>

#include "src/transport/mapped/atomics.hpp"
#include "tests/model/expectations.hpp"

namespace weft {
namespace {

using model::Program;
using model::require;

struct Board {
  Bell bell;
  std::uint32_t raised;  // a flag of a WordBell; 32 bits here
  std::uint64_t news;
  std::uint64_t data;
};

Board board;

void wake_all() {
  AtomicRef(board.bell.rings).fetch_add(1, std::memory_order_relaxed);
  model::wake(&board.bell.rings, kEveryGroup);
}

bool has_news() {
  return transport::load_word(&board.news) != 0;
}

void publish() {
  board.data = 5;
  transport::store_word(&board.news, std::uint64_t{1});
}

void publish_and_ring() {
  publish();
  full_fence();
  if (AtomicRef(board.bell.sleepers).load(std::memory_order_relaxed) != 0) {
    wake_all();
  }
}

void sleep_until_news() {
  while (!has_news()) {
    const std::uint32_t rings = AtomicRef(board.bell.rings).load(std::memory_order_relaxed);
    AtomicRef(board.bell.sleepers).fetch_add(1, std::memory_order_relaxed);
    full_fence();
    if (!has_news()) {
      model::sleep_on(&board.bell.rings, rings, kEveryGroup);
    }
    AtomicRef(board.bell.sleepers).fetch_sub(1, std::memory_order_relaxed);
  }
  require(board.data == 5, "news came before its data");
}

// word_bell.hpp with a full fence between the store and the look at the flag, as after an atomic on
// x86.
void publish_and_ring_for_word() {
  publish();
  full_fence();
  if (AtomicRef(board.raised).load(std::memory_order_relaxed) != 0 &&
      AtomicRef(board.raised).exchange(0, std::memory_order_acquire) != 0) {
    wake_all();
  }
}

void sleep_until_word() {
  while (!has_news()) {
    const std::uint32_t rings = AtomicRef(board.bell.rings).load(std::memory_order_relaxed);
    AtomicRef(board.raised).store(1, std::memory_order_release);
    full_fence();
    if (!has_news()) {
      model::sleep_on(&board.bell.rings, rings, kEveryGroup);
    }
  }
  require(board.data == 5, "news came before its data");
}

Program program(std::function<void()> ringer,
                const std::function<void()>& sleeper,
                std::size_t sleepers = 2) {
  std::vector<std::function<void()>> threads(1 + sleepers, sleeper);
  threads[0] = std::move(ringer);
  return {.prepare = [] { board = {}; },
          .threads = std::move(threads),
          .finish = {},
          .shared = {{&board.bell.rings, 4, "rings"},
                     {&board.bell.sleepers, 4, "sleepers"},
                     {&board.raised, 4, "flag"},
                     {&board.news, 8, "news"},
                     {&board, sizeof(board), ""}}};
}

TEST(ModelBell, NoRingIsMissed) {
  model::expect_no_violation(program(publish_and_ring, sleep_until_news));
}

TEST(ModelBell, NoRingForAWordIsMissedAfterAFullFence) {
  model::expect_no_violation(program(publish_and_ring_for_word, sleep_until_word));
}

TEST(ModelBell, WithoutTheFenceARingMayBeMissed) {
  model::expect_violation(program(
      [] {
        publish();
        if (AtomicRef(board.raised).load(std::memory_order_relaxed) != 0 &&
            AtomicRef(board.raised).exchange(0, std::memory_order_acquire) != 0) {
          wake_all();
        }
      },
      sleep_until_word));
}

TEST(ModelBell, WeakerOrdersAreNoticed) {
  model::expect_noticed(program(publish_and_ring, sleep_until_news, 1), {});
  // After a full fence on both sides nothing else is needed; without it the two order `rings`, see
  // `word-bell`.
  model::expect_noticed(
      program(publish_and_ring_for_word, sleep_until_word, 1),
      {"bell_test.cpp publish_and_ring_for_word: update acquire of flag -> relaxed",
       "bell_test.cpp sleep_until_word: store release of flag -> relaxed"});
}

}  // namespace
}  // namespace weft
