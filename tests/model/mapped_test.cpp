// Puts, gets and bells in memory that PEs map: what a call without an order of its own may still
// rely on.
#include <gtest/gtest.h>

#include <cstdint>
#include <functional>
#include <utility>

#include "src/base/atomic.hpp"
#include "src/transport/mapped/atomics.hpp"
#include "src/transport/mapped/copy.hpp"
#include "tests/model/expectations.hpp"

namespace weft::transport {
namespace {

using model::await;
using model::Program;
using model::require;

// On PE 1.
struct Heap {
  alignas(16)
      std::uint64_t pair[2];  // NOLINT(modernize-avoid-c-arrays): a get of 16 bytes is plain loads
  std::uint64_t data;
  std::uint64_t flag;
  std::uint64_t next;
};

Heap heap;

// p of api/fast_path.hpp.
void p(std::uint64_t* word, std::uint64_t value) {
  AtomicRef(*word).store(value, std::memory_order_relaxed);
}

void wait_until_one(std::uint64_t* word) {
  await([=] { return load_word(word) == 1; });
}

Program program(std::function<void()> origin, std::function<void()> target) {
  return {.prepare = [] { heap = {.pair = {3, 3}, .data = 3, .flag = 0, .next = 0}; },
          .threads = {std::move(origin), std::move(target)},
          .finish = {},
          .shared = {{&heap.flag, 8, "flag"}, {&heap, sizeof(heap), ""}}};
}

void change_pair() {
  wait_until_one(&heap.flag);
  heap.pair[0] = heap.pair[1] = 7;
}

void get_then_p() {
  std::uint64_t got[2];  // NOLINT(modernize-avoid-c-arrays)
  fetch_bytes(got, heap.pair, sizeof got);
  require(got[0] == 3 && got[1] == 3, "a get has read what came after it");
  p(&heap.flag, 1);
}

TEST(ModelMapped, AGetHasReadBeforeALaterPIsSeen) {
  model::expect_no_violation(program(get_then_p, change_pair));
}

TEST(ModelMapped, WithoutTheFenceOfAGetItWouldNot) {
  model::expect_violation(program(
      [] {
        std::uint64_t got[2];  // NOLINT(modernize-avoid-c-arrays)
        copy_bytes(got, heap.pair, sizeof got);
        require(got[0] == 3 && got[1] == 3, "a get has read what came after it");
        p(&heap.flag, 1);
      },
      change_pair));
}

TEST(ModelMapped, WeakerOrdersOfAGetAreNoticed) {
  // What the target does depends on the p, so here only the release half matters. Which half a CPU
  // needs differs.
  model::expect_noticed(program(get_then_p, change_pair),
                        {"copy.hpp fetch_bytes: fence acq_rel -> release"});
}

void put_fence_p() {
  const std::uint64_t value = 5;
  heap.data = value;
  ordering_fence();
  p(&heap.flag, 1);
}

void read_data() {
  wait_until_one(&heap.flag);
  require(heap.data == 5, "a p is seen before what came before the fence");
}

TEST(ModelMapped, APIsSeenAfterWhatCameBeforeTheFence) {
  model::expect_no_violation(program(put_fence_p, read_data));
}

TEST(ModelMapped, APWithoutAFenceOrdersNothing) {
  model::expect_violation(program(
      [] {
        heap.data = 5;
        p(&heap.flag, 1);
      },
      read_data));
}

void put_signal() {
  heap.data = 5;
  update_signal(&heap.flag, AtomicCode::Set, 1);
}

TEST(ModelMapped, ASignalIsSeenAfterItsData) {
  model::expect_no_violation(program(put_signal, read_data));
  model::expect_noticed(program(put_signal, read_data), {});
}

// Signals of two PEs that add: who sees the sum sees the data of both.
TEST(ModelMapped, TheSumOfTwoSignalsCoversTheDataOfBoth) {
  const auto made = [] {
    Program both = program(
        [] {
          heap.data = 5;
          update_signal(&heap.flag, AtomicCode::Add, 1);
        },
        [] {
          heap.next = 6;
          update_signal(&heap.flag, AtomicCode::Add, 1);
        });
    both.threads.emplace_back([] {
      await([] { return load_word(&heap.flag) == 2; });
      require(heap.data == 5 && heap.next == 6, "a sum is seen before its data");
    });
    return both;
  }();
  model::expect_no_violation(made);
  // Each thread has one atomic: a total order of all of them is not needed here.
  model::expect_noticed(made,
                        {"atomic_update.hpp apply_atomic: update seq_cst of flag -> acq_rel"});
}

// quiet, then a load: of two PEs that do it with each other's word at least one sees the other
// (Dekker).
TEST(ModelMapped, OfTwoThatPutQuietAndGetOneSeesTheOther) {
  static std::uint64_t seen[2];  // NOLINT(modernize-avoid-c-arrays)
  const auto side = [](int me, std::uint64_t* mine, std::uint64_t* other) {
    return [=] {
      p(mine, 1);
      full_fence();
      seen[me] = load_word(other);
    };
  };
  Program made = program(side(0, &heap.flag, &heap.next), side(1, &heap.next, &heap.flag));
  made.prepare = [] {
    heap = {};
    seen[0] = seen[1] = 0;
  };
  made.finish = [] { require(seen[0] == 1 || seen[1] == 1, "neither saw the other"); };
  model::expect_no_violation(made);
  // The load orders nothing after it here.
  model::expect_noticed(made, {"atomics.hpp load_word: load acquire of flag -> relaxed",
                               "atomics.hpp load_word: load acquire -> relaxed"});
}

}  // namespace
}  // namespace weft::transport
