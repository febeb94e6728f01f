// A put_signal whose pieces come over two rails: whichever thread takes a completion from a NIC,
// and in whatever order, the signal word changes after all data. The count is the receiver's own;
// the lock and the NICs are restated: RailsTransport::advance
// (src/transport/rails/rails_transport.cpp) polls a NIC and calls Receiver::on_immediate and
// handle_signal under one lock, and Receiver::update applies the atomic.
#include <gtest/gtest.h>

#include <cstdint>

#include "src/transport/atomic_update.hpp"
#include "src/transport/mapped/atomics.hpp"
#include "src/transport/rails/piece_tally.hpp"
#include "tests/model/expectations.hpp"

namespace weft::transport::rails {
namespace {

using model::await;
using model::require;

constexpr std::uint32_t kPieces = 2;

struct Target {
  std::uint64_t data[kPieces];     // NOLINT(modernize-avoid-c-arrays): what the NICs write
  std::uint64_t arrived[kPieces];  // NOLINT(modernize-avoid-c-arrays): their completion queues
  std::uint64_t lock;
  std::uint64_t is_signaled;
  std::uint64_t word;
  PieceTally tally;
};

Target target;

void nic(std::uint32_t rail) {
  target.data[rail] = 5;
  AtomicRef(target.arrived[rail]).store(1, std::memory_order_release);
}

void signal_if(bool is_complete) {
  if (is_complete) {
    apply_atomic(target.word, AtomicCode::Add, std::uint64_t{1}, std::uint64_t{0});
  }
}

// One thread that makes progress: it takes what one rail has; the first to come also takes the
// signal's message.
void progress(std::uint32_t rail) {
  await([&] { return AtomicRef(target.arrived[rail]).load(std::memory_order_acquire) != 0; });
  await([] { return AtomicRef(target.lock).exchange(1, std::memory_order_acquire) == 0; });
  signal_if(target.tally.on_piece());
  if (target.is_signaled++ == 0) {
    signal_if(target.tally.on_signal(kPieces) == PieceTally::Answer::Complete);
  }
  AtomicRef(target.lock).store(0, std::memory_order_release);
}

void wait_for_signal() {
  await([] { return load_word(&target.word) == 1; });
  require(target.data[0] == 5 && target.data[1] == 5, "a signal came before its data");
}

model::Program program() {
  return {.prepare = [] { target = {}; },
          .threads = {[] {
                        nic(0);
                        progress(0);
                      },
                      [] {
                        nic(1);
                        progress(1);
                      },
                      wait_for_signal},
          .finish = {},
          .shared = {{&target.lock, 8, "lock"},
                     {&target.arrived, sizeof(target.arrived), "queue"},
                     {&target, sizeof(target), ""}}};
}

TEST(ModelSignal, ASignalIsSeenAfterAllPiecesOfBothRails) {
  model::expect_no_violation(program());
}

TEST(ModelSignal, WeakerOrdersAreNoticed) {
  // Here the thread that polls a queue is the one that filled it, and acq_rel is as good as
  // seq_cst.
  model::expect_noticed(program(), {"signal_test.cpp nic: store release of queue -> relaxed",
                                    "signal_test.cpp progress: load acquire of queue -> relaxed",
                                    "atomic_update.hpp apply_atomic: update seq_cst -> acq_rel"});
}

TEST(ModelSignal, EveryOrderOfPiecesAndSignalCompletesOnce) {
  for (std::uint32_t pieces = 0; pieces <= 8; ++pieces) {
    for (std::uint32_t before = 0; before <= pieces; ++before) {
      PieceTally tally;
      std::uint32_t completed = 0;
      for (std::uint32_t i = 0; i < before; ++i) {
        completed += tally.on_piece() ? 1 : 0;
      }
      completed += tally.on_signal(pieces) == PieceTally::Answer::Complete ? 1 : 0;
      for (std::uint32_t i = before; i < pieces; ++i) {
        ASSERT_EQ(completed, 0U);
        completed += tally.on_piece() ? 1 : 0;
      }
      ASSERT_EQ(completed, 1U) << pieces << " pieces, " << before << " before the signal";
    }
  }
}

}  // namespace
}  // namespace weft::transport::rails
