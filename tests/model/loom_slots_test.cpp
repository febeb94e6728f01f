// A slot of Loom's segment that changes its owner. Restates loom/src/slots.hpp `claim_slot`,
// `open_slot` and `close_slot`, which use std::atomic: the new owner's generation is newer than the
// one under which the old was known.
#include <gtest/gtest.h>

#include <cstdint>

#include "src/base/atomic.hpp"
#include "tests/model/explorer.hpp"

namespace weft::test {
namespace {

using model::require;

constexpr std::uint32_t kOld = 7;
constexpr std::uint32_t kNew = 8;

struct Slot {
  std::uint32_t pid;
  std::uint32_t generation;
};

Slot slot;

void close_slot() {
  const std::uint32_t generation = AtomicRef(slot.generation).load(std::memory_order_relaxed);
  AtomicRef(slot.generation).store(generation + 1, std::memory_order_release);
  AtomicRef(slot.pid).store(0, std::memory_order_release);
}

void open_slot() {
  const std::uint32_t generation = AtomicRef(slot.generation).load(std::memory_order_relaxed);
  AtomicRef(slot.generation).store(generation + 1, std::memory_order_release);
}

// claim_slot waits for no slot; here only what follows a successful exchange matters.
void own_next(std::memory_order order) {
  std::uint32_t free = 0;
  model::await([&] {
    free = 0;
    return AtomicRef(slot.pid).compare_exchange_strong(free, kNew, order);
  });
  const std::uint32_t generation = AtomicRef(slot.generation).load(std::memory_order_relaxed);
  require(generation == 2, "the new owner sees a generation of the old one");
}

std::string violation_with(std::memory_order order) {
  return model::explore({.prepare = [] { slot = {.pid = kOld, .generation = 0}; },
                         .threads = {[] {
                                       open_slot();
                                       close_slot();
                                     },
                                     [order] { own_next(order); }},
                         .finish = {},
                         .shared = {{&slot, sizeof(slot), ""}}})
      .violation;
}

TEST(ModelLoomSlots, ANewOwnerSeesWhatTheLastOneClosed) {
  EXPECT_EQ(violation_with(std::memory_order_acquire), "");
}

TEST(ModelLoomSlots, ARelaxedExchangeWouldNotDo) {
  EXPECT_NE(violation_with(std::memory_order_relaxed), "");
}

}  // namespace
}  // namespace weft::test
