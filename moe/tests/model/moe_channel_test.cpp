// The channel of an exchange of experts on one node: two generations of buffers and no barrier.
// moe/src/cpu/channel.cpp restated over the project's own words (store: rows, a fence, a put_signal
// of the header; has_come: the flag), because it calls the public interface. Each PE sends to its
// peer in every call, then waits, then reads in place.
#include <gtest/gtest.h>

#include <cstdint>

#include "src/transport/mapped/atomics.hpp"
#include "tests/model/expectations.hpp"

namespace weft::transport {
namespace {

using model::await;
using model::Program;
using model::require;

struct Generation {
  std::uint64_t row;
  std::uint64_t header;
  std::uint64_t flag;
};

// By PE, then by generation: what its peer writes.
Generation memory[2][3];  // NOLINT(modernize-avoid-c-arrays)

std::uint64_t value_of(std::uint64_t sender, std::uint64_t call) {
  return 10 * call + sender;
}

void send(std::uint64_t me, std::uint64_t call, std::uint64_t generations) {
  Generation& to = memory[1 - me][call % generations];
  to.row = value_of(me, call);
  ordering_fence();
  to.header = value_of(me, call);
  update_signal(&to.flag, AtomicCode::Set, call);
}

void receive(std::uint64_t me, std::uint64_t call, std::uint64_t generations) {
  Generation& here = memory[me][call % generations];
  await([&] { return load_word(&here.flag) == call; });
  require(here.header == value_of(1 - me, call) && here.row == value_of(1 - me, call),
          "rows of another call");
}

Program program(std::uint64_t calls, std::uint64_t generations) {
  Program made{.prepare =
                   [] {
                     for (auto& pe : memory) {
                       for (Generation& generation : pe) {
                         generation = {};
                       }
                     }
                   },
               .threads = {},
               .finish = {},
               .shared = {{&memory, sizeof(memory), ""}}};
  for (std::uint64_t me = 0; me < 2; ++me) {
    made.threads.emplace_back([=] {
      for (std::uint64_t call = 1; call <= calls; ++call) {
        send(me, call, generations);
        receive(me, call, generations);
      }
    });
  }
  return made;
}

TEST(ModelMoeChannel, TwoGenerationsNeedNoBarrier) {
  model::expect_no_violation(program(5, 2));
}

TEST(ModelMoeChannel, OneGenerationWouldBeOverwritten) {
  model::expect_violation(program(3, 1));
}

// Rows that are read in place until the next-but-one call begins need a third.
Program held(std::uint64_t generations) {
  Program made = program(0, generations);
  made.threads.clear();
  for (std::uint64_t me = 0; me < 2; ++me) {
    made.threads.emplace_back([=] {
      for (std::uint64_t call = 1; call <= 4; ++call) {
        send(me, call, generations);
        receive(me, call, generations);
        if (call > 1) {
          require(memory[me][(call - 1) % generations].row == value_of(1 - me, call - 1),
                  "rows that are held are overwritten");
        }
      }
    });
  }
  return made;
}

TEST(ModelMoeChannel, RowsThatAreHeldUntilTheNextCallEndsNeedThreeGenerations) {
  model::expect_no_violation(held(3));
  model::expect_violation(held(2));
}

TEST(ModelMoeChannel, WeakerOrdersAreNoticed) {
  // The signal's own release covers the rows, too: on one node the fence orders nothing more.
  model::expect_noticed(program(3, 2), {"moe_channel_test.cpp send: fence acq_rel -> acquire",
                                        "moe_channel_test.cpp send: fence acq_rel -> release"});
}

}  // namespace
}  // namespace weft::transport
