// A fence over several rings: what a thread has posted, and another thread knows of, the proxy
// takes before what that one posts after its fence. Two blocks with a ring each; remote.cuh
// `await_other_rings` and engine.cpp `has_taken_awaited` restated over the rings' own code.
#include <weft/device/command_views.hpp>

#include <gtest/gtest.h>

#include <cstddef>
#include <cstdint>
#include <functional>
#include <new>
#include <vector>

#include "tests/model/expectations.hpp"
#include "tests/model/ring_memories.hpp"

namespace weft::test {
namespace {

using device::Command;
using device::CommandKind;
using device::CommandSlot;
using device::RingView;
using model::await;
using model::Program;
using model::require;

struct Ring {
  // NOLINTBEGIN(modernize-avoid-c-arrays): device code has no std::array
  alignas(RingView::kLineBytes) std::byte far[RingView::far_bytes(1)];
  alignas(RingView::kLineBytes) std::byte near[RingView::kNearBytes];
  // NOLINTEND(modernize-avoid-c-arrays)
};

struct Board {
  Ring rings[2];  // NOLINT(modernize-avoid-c-arrays)
  std::uint64_t met;
};

Board board;

RingView view(int ring) {
  return {.far = board.rings[ring].far, .near = board.rings[ring].near, .capacity = 1};
}

Program with_threads(std::vector<std::function<void()>> threads) {
  return {.prepare = [] { new (&board) Board{}; },
          .threads = std::move(threads),
          .finish = {},
          .shared = {{view(0).slot(0), sizeof(CommandSlot), "slot of ring 0"},
                     {view(0).head(), 8, "head of ring 0"},
                     {view(1).slot(0), sizeof(CommandSlot), "slot of ring 1"},
                     {view(1).head(), 8, "head of ring 1"},
                     {&board.met, 8, "met"}}};
}

// Which of a command's awaited positions is in a word of the slot that TwoWords carries.
constexpr std::size_t kCarried = TwoGpuWords::kOperand - device::AwaitCommand::kRingPositions;

// `awaited`: the position in the other ring.
void publish(int ring, std::uint64_t position, std::uint64_t awaited) {
  Command command;
  device::AwaitCommand await;
  await.ring_positions[kCarried] = awaited;
  await.write_to(command);
  device::RingProducer<TwoGpuWords>(view(ring)).publish(position, command);
}

std::uint64_t awaited_by(const Command& command) {
  return device::AwaitCommand::from(command).ring_positions[kCarried];
}

void put(int ring) {
  publish(ring, device::RingProducer<TwoGpuWords>(view(ring)).claim(), 0);
}

// Awaits what the other ring has at this moment.
void fence(int ring) {
  const std::uint64_t other = TwoGpuWords::load_near(view(1 - ring).head());
  publish(ring, device::RingProducer<TwoGpuWords>(view(ring)).claim(), other);
}

// As `fence`, in the order that may not be.
void claim_first(int ring) {
  const std::uint64_t position = device::RingProducer<TwoGpuWords>(view(ring)).claim();
  publish(ring, position, TwoGpuWords::load_near(view(1 - ring).head()));
}

void meet(std::memory_order order) {
  AtomicRef(board.met).store(1, order);
}

void wait_for_meeting() {
  await([] { return AtomicRef(board.met).load(std::memory_order_acquire) == 1; });
}

// Takes the command of each ring; the order is free, but for what a command awaits. Returns the
// ring that was first.
int take_both() {
  bool taken[2] = {false, false};  // NOLINT(modernize-avoid-c-arrays)
  int first = -1;
  while (!taken[0] || !taken[1]) {
    await([&] {
      bool moved = false;
      for (int ring = 0; ring < 2; ++ring) {
        Command command;
        const bool can_take = !taken[ring] &&
                              device::RingConsumer<TwoHostWords>(view(ring)).peek(0, command) &&
                              (awaited_by(command) == 0 || taken[1 - ring]);
        if (can_take) {
          taken[ring] = true;
          first = first < 0 ? ring : first;
          moved = true;
        }
      }
      return moved;
    });
  }
  return first;
}

TEST(ModelFence, WhatItsThreadKnowsOfIsTakenBefore) {
  model::expect_no_violation(
      with_threads({[] {
                      put(1);
                      meet(std::memory_order_release);
                    },
                    [] {
                      wait_for_meeting();
                      fence(0);
                    },
                    [] { require(take_both() == 1, "the fence was first"); }}));
}

TEST(ModelFence, WithoutAMeetingThereIsNoOrder) {
  model::expect_violation(with_threads({[] {
                                          put(1);
                                          meet(std::memory_order_relaxed);
                                        },
                                        [] {
                                          wait_for_meeting();
                                          fence(0);
                                        },
                                        [] { require(take_both() == 1, "the fence was first"); }}));
}

TEST(ModelFence, FencesThatAwaitEachOthersRingsDoNotStall) {
  model::expect_no_violation(
      with_threads({[] { fence(0); }, [] { fence(1); }, [] { take_both(); }}));
}

TEST(ModelFence, APositionThatIsClaimedBeforeTheHeadsAreReadCouldStall) {
  model::expect_violation(
      with_threads({[] { claim_first(0); }, [] { claim_first(1); }, [] { take_both(); }}));
}

}  // namespace
}  // namespace weft::test
