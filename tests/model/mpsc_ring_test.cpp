// The ring through which the PEs of a node send each other commands, and the slots in which they
// answer: every order of their accesses, and every value that a weak memory may return.
#include "src/transport/cma/mpsc_ring.hpp"

#include <gtest/gtest.h>

#include <cstdint>
#include <new>

#include "src/transport/cma/status_slots.hpp"
#include "tests/model/expectations.hpp"

namespace weft::transport::cma {
namespace {

using model::await;
using model::Program;
using model::require;

struct Payload {
  std::uint64_t producer;
  std::uint64_t number;
};

template <std::uint32_t kSlots>
struct RingTest {
  using Ring = MpscRing<Payload, kSlots>;

  alignas(Ring) static inline Ring ring;

  // Pushes `count` numbers; its PE is `producer`.
  static void produce(std::uint32_t producer, std::uint64_t count) {
    for (std::uint64_t number = 1; number <= count; ++number) {
      const Payload payload{.producer = producer, .number = number};
      await([&] { return push(ring, producer, payload); });
    }
  }

  // Takes all: each producer's in order, none twice, none lost.
  static void consume(std::uint64_t count) {
    MpscConsumer<Payload, kSlots> consumer(ring);
    std::uint64_t last[4] = {};  // NOLINT(modernize-avoid-c-arrays)
    for (std::uint64_t taken = 0; taken < count; ++taken) {
      Payload payload{};
      await([&] { return consumer.pop(payload); });
      require(payload.number == last[payload.producer] + 1,
              "a command is lost, doubled or overtaken");
      last[payload.producer] = payload.number;
    }
  }

  static Program program(std::uint32_t producers, std::uint64_t each) {
    Program made{.prepare = [] { new (&ring) Ring{}; },
                 .threads = {},
                 .finish = {},
                 .shared = {{&ring, sizeof(ring), ""}}};
    for (std::uint32_t i = 0; i < producers; ++i) {
      made.threads.emplace_back([i, each] { produce(i, each); });
    }
    made.threads.emplace_back([=] { consume(producers * each); });
    return made;
  }
};

TEST(ModelMpscRing, TwoProducersThatReuseOneSlotLoseNothing) {
  model::expect_no_violation(RingTest<1>::program(2, 1));
}

TEST(ModelMpscRing, OneProducerGoesRoundTwoSlots) {
  model::expect_no_violation(RingTest<2>::program(1, 3));
}

TEST(ModelMpscRing, TwoProducersGoRoundTwoSlots) {
  model::expect_no_violation(RingTest<2>::program(2, 1));
}

TEST(ModelMpscRing, WeakerOrdersAreNoticed) {
  // The load and the exchange of push confirm each other: one acquire of the two is enough.
  model::expect_noticed(RingTest<1>::program(1, 2),
                        {"mpsc_ring.hpp push: load acquire -> relaxed",
                         "mpsc_ring.hpp push: update acquire -> relaxed"});
}

struct Answering {
  alignas(StatusMemory<64>) static inline StatusMemory<64> statuses;
  static inline std::uint64_t is_posted;
  static inline std::uint64_t copied[2];  // NOLINT(modernize-avoid-c-arrays): what the targets copy

  static Program program() {
    Program made{.prepare =
                     [] {
                       new (&statuses) StatusMemory<64>{};
                       is_posted = copied[0] = copied[1] = 0;
                     },
                 .threads = {},
                 .finish = {},
                 .shared = {{&statuses, sizeof(statuses), ""}, {&copied, sizeof(copied), ""}}};
    for (std::uint32_t target = 0; target < 2; ++target) {
      made.threads.emplace_back([target] {
        await([] { return AtomicRef(is_posted).load(std::memory_order_acquire) != 0; });
        copied[target] = 5;
        answer(statuses, target, {.state = SlotState::Done, .result = 10 + target});
      });
    }
    made.threads.emplace_back(collect);
    return made;
  }

  static void collect() {
    StatusBoard<64> board(statuses);
    static_cast<void>(board.reserve());
    static_cast<void>(board.reserve());
    AtomicRef(is_posted).store(1, std::memory_order_release);  // as the ring does
    std::uint32_t count = 0;
    while (count < 2) {
      await([&] { return board.has_news(); });
      board.collect([&](std::uint32_t slot, const Answer& given) {
        require(given.result == 10 + slot && copied[slot] == 5, "an answer came before its effect");
        ++count;
      });
    }
  }
};

TEST(ModelStatusSlots, WeakerOrdersAreNoticed) {
  // collect reads the same count again.
  model::expect_noticed(Answering::program(),
                        {"status_slots.hpp has_news: load acquire -> relaxed"});
}

TEST(ModelStatusSlots, AnswersInAnyOrderAreSeenOnceWithTheirEffects) {
  model::expect_no_violation(Answering::program());
}

}  // namespace
}  // namespace weft::transport::cma
