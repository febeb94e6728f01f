// OpenSHMEM's queue lock between PEs of one node: src/shmem/lock.cpp restated over the same words
// and the project's atomics, as its calls need a job. Two or three PEs change a counter by plain
// stores while they hold it.
#include <gtest/gtest.h>

#include <cstdint>
#include <functional>
#include <vector>

#include "src/transport/atomic_update.hpp"
#include "src/transport/mapped/atomics.hpp"
#include "tests/model/expectations.hpp"

namespace weft::transport {
namespace {

using model::await;
using model::Program;
using model::require;

constexpr std::uint32_t kPes = 3;
constexpr std::uint32_t kWaiting = std::uint32_t{1} << 31U;

struct Lock {
  std::uint32_t own[kPes];  // NOLINT(modernize-avoid-c-arrays)
  std::uint32_t last;
  std::uint64_t guarded;
};

Lock lock;

std::uint32_t update(std::uint32_t& word,
                     AtomicCode code,
                     std::uint32_t value,
                     std::uint32_t compare = 0) {
  return apply_atomic(word, code, value, compare);
}

void set_lock(std::uint32_t me) {
  store_word(&lock.own[me - 1], kWaiting);
  const std::uint32_t previous = update(lock.last, AtomicCode::Set, me);
  if (previous == 0) {
    update(lock.own[me - 1], AtomicCode::And, ~kWaiting);
    return;
  }
  update(lock.own[previous - 1], AtomicCode::Or, me);
  await([=] { return (load_word(&lock.own[me - 1]) & kWaiting) == 0; });
}

void clear_lock(std::uint32_t me) {
  full_fence();  // quiet
  if (load_word(&lock.own[me - 1]) == 0) {
    if (update(lock.last, AtomicCode::CompareSwap, 0, me) == me) {
      return;
    }
    await([=] { return load_word(&lock.own[me - 1]) != 0; });
  }
  const std::uint32_t next = load_word(&lock.own[me - 1]);
  store_word(&lock.own[me - 1], std::uint32_t{0});
  update(lock.own[next - 1], AtomicCode::And, ~kWaiting);
}

bool test_lock(std::uint32_t me) {
  return update(lock.last, AtomicCode::CompareSwap, me, 0) == 0;
}

void count(std::uint32_t me, std::uint32_t times) {
  for (std::uint32_t i = 0; i < times; ++i) {
    set_lock(me);
    ++lock.guarded;
    clear_lock(me);
  }
}

Program program(std::vector<std::function<void()>> threads, std::uint64_t expected) {
  return {.prepare = [] { lock = {}; },
          .threads = std::move(threads),
          .finish = [=] { require(lock.guarded == expected, "two held the lock"); },
          .shared = {{&lock.own, sizeof(lock.own), "own"}, {&lock, sizeof(lock), ""}}};
}

TEST(ModelLock, TwoPesThatTakeItTwiceExcludeEachOther) {
  model::expect_no_violation(program({[] { count(1, 2); }, [] { count(2, 2); }}, 4));
}

TEST(ModelLock, ThreePesPassItOnInAQueue) {
  model::expect_no_violation(
      program({[] { count(1, 1); }, [] { count(2, 1); }, [] { count(3, 1); }}, 3));
}

TEST(ModelLock, APeThatOnlyTriesExcludesTheOther) {
  model::expect_no_violation(program({[] { count(1, 1); },
                                      [] {
                                        await([] { return test_lock(2); });
                                        ++lock.guarded;
                                        clear_lock(2);
                                      }},
                                     2));
}

TEST(ModelLock, WeakerOrdersAreNoticed) {
  // No two words are compared, so a total order of all updates is not needed. Each store, and the
  // fence, precede an update that releases; quiet needs its fence for puts to other PEs.
  model::expect_noticed(program({[] { count(1, 2); }, [] { count(2, 1); }}, 3),
                        {"atomic_update.hpp apply_atomic: update seq_cst -> acq_rel",
                         "atomic_update.hpp apply_atomic: update seq_cst of own -> acq_rel",
                         "atomics.hpp store_word: store release of own -> relaxed",
                         "lock_test.cpp clear_lock: fence seq_cst -> acq_rel"});
}

}  // namespace
}  // namespace weft::transport
