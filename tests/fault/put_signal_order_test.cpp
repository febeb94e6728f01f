// Whoever sees a signal sees its data: put_signals of every size, half of them lists of segments,
// through a network that reorders, delays, refuses and loses rails, by seed. A failing seed is
// printed; keep it as a case of its own.
#include <gtest/gtest.h>

#include <cstdlib>
#include <cstring>
#include <random>

#include "src/fabric/discovery.hpp"
#include "tests/support/rails_pes.hpp"
#include "tests/support/simulated_network.hpp"

namespace weft::transport::rails {
namespace {

constexpr std::size_t kSlots = 16;
constexpr std::size_t kSlotBytes = 300U << 10U;
constexpr std::size_t kSignalsAt = 64;
constexpr std::size_t kDataAt = 4096;
constexpr std::size_t kHeapBytes = kDataAt + kSlots * kSlotBytes;

struct Scenario {
  std::uint64_t seed = 1;
  std::uint32_t rails = 4;
  test::NetworkFaults faults;
  bool kill_rails = false;
  bool is_signed = false;
  bool emulated =
      false;  // on the NICs of this process's node, which `loom` cuts and heals from outside
};

// PE 0 sends numbered messages into slots of PE 1; PE 1 checks every byte when a slot's signal
// comes, poisons the slot, and frees it. A message may use a slot only after it was freed.
class Exchange {
 public:
  explicit Exchange(const Scenario& scenario)
      : scenario_(scenario), network_(scenario.seed, scenario.faults), random_(scenario.seed + 1) {
    RailsOptions options;
    options.stripe_bytes_min = 16U << 10U;
    if (scenario.is_signed) {
      options.secret = "of the job";
    }
    pes_ = test::make_rails_pes(2, kHeapBytes, options, [&](std::uint32_t pe) {
      return scenario.emulated ? open_emulated(pe) : make_simulated(pe);
    });
    slots_.resize(kSlots);
    sources_.resize(kSlots);
  }

  // Returns the number of violations.
  std::uint64_t run(std::uint64_t messages) {
    while (received_ < messages) {
      for (std::size_t slot = 0; slot < kSlots; ++slot) {
        if (slots_[slot].number == 0 && sent_ < messages) {
          send(slot);
        }
      }
      test::progress_all(pes_);
      receive();
      if (scenario_.kill_rails && ++passes_ % 4000 == 0) {
        toggle_rail();
      }
      if (++idle_passes_ > 30'000'000) {
        ADD_FAILURE() << "stuck after " << received_ << " of " << messages << ", seed "
                      << scenario_.seed;
        return violations_ + 1;
      }
    }
    revive_all();
    EXPECT_TRUE(test::progress_until(pes_, [&] {
      pes_[0]->transport->flush(Pe(1));
      return counter_.is_idle();
    })) << "quiet";
    return violations_;
  }

 private:
  RailsTransport::Rails make_simulated(std::uint32_t pe) {
    RailsTransport::Rails rails;
    for (std::uint32_t i = 0; i < scenario_.rails; ++i) {
      rails.push_back(network_.make_rail("pe" + std::to_string(pe) + "nic" + std::to_string(i)));
    }
    return rails;
  }

  // Each PE has as many NICs of its own.
  RailsTransport::Rails open_emulated(std::uint32_t pe) const {
    const std::vector<fabric::NicInfo> nics = fabric::discover(load_config_from_environment());
    RailsTransport::Rails rails;
    for (std::size_t i = pe * scenario_.rails; i < nics.size() && rails.size() < scenario_.rails;
         ++i) {
      rails.push_back(fabric::open_rail(nics[i]));
    }
    return rails;
  }

  struct Slot {
    std::uint64_t number = 0;  // of the message that is in it; 0: free
    std::size_t bytes = 0;
  };

  static std::byte pattern(std::uint64_t number, std::size_t at) {
    return static_cast<std::byte>((number * 2654435761U + at * 31U) >> 7U);
  }

  // Mostly small, sometimes large enough for many pieces.
  std::size_t draw_bytes() {
    const auto kind = random_() % 16;
    return kind == 0 ? random_() % kSlotBytes : kind < 4 ? random_() % 20'000 : random_() % 1500;
  }

  // The same bytes in ranges of all lengths: some are written, and some come in messages.
  std::vector<GatherSegment> segments_of(const Operation& whole) {
    std::vector<GatherSegment> segments;
    for (std::size_t begin = 0; begin < whole.bytes;) {
      const std::size_t most = random_() % 3 == 0 ? 20'000 : 1500;
      const std::size_t bytes = std::min(whole.bytes - begin, 1 + random_() % most);
      segments.push_back(
          {.remote = {whole.remote.region, HeapOffset(whole.remote.offset.value + begin)},
           .local = static_cast<std::byte*>(whole.local) + begin,
           .bytes = bytes});
      begin += bytes;
    }
    return segments;
  }

  void send(std::size_t slot) {
    const std::size_t bytes = draw_bytes();
    const std::uint64_t number = sent_ + 1;
    auto& source = sources_[slot];
    source.resize(bytes);
    for (std::size_t i = 0; i < bytes; ++i) {
      source[i] = pattern(number, i);
    }
    Operation operation{.kind = OperationKind::PutSignal,
                        .peer = Pe(1),
                        .remote = {RegionIndex(0), HeapOffset(kDataAt + slot * kSlotBytes)},
                        .local = source.data(),
                        .bytes = bytes,
                        .update = {.code = AtomicCode::Set,
                                   .word = {RegionIndex(0), HeapOffset(kSignalsAt + slot * 8)},
                                   .operand = number},
                        .counter = &counter_};
    const std::vector<GatherSegment> segments = segments_of(operation);
    if (number % 2 == 0 && segments.size() > 1) {
      operation.segments = segments;
    }
    if (pes_[0]->transport->post(operation) == Status::Ok) {
      sent_ = number;
      slots_[slot] = {number, bytes};
    }
  }

  void receive() {
    for (std::size_t slot = 0; slot < kSlots; ++slot) {
      Slot& expected = slots_[slot];
      std::uint64_t& signal = *pes_[1]->word(kSignalsAt + slot * 8);
      if (expected.number == 0 || signal != expected.number) {
        violations_ += signal != 0 && signal != expected.number ? 1 : 0;
        continue;
      }
      std::byte* data = pes_[1]->memory.data() + kDataAt + slot * kSlotBytes;
      for (std::size_t i = 0; i < expected.bytes; ++i) {
        violations_ += data[i] != pattern(expected.number, i) ? 1 : 0;
      }
      std::memset(data, 0xEE, expected.bytes);
      signal = 0;
      expected = {};
      ++received_;
      idle_passes_ = 0;
    }
  }

  // One rail at most is dead at a time, so that the peer stays reachable.
  void toggle_rail() {
    revive_all();
    if (random_() % 2 == 0) {
      network_.kill(random_() % network_.rail_count());
    }
  }

  void revive_all() {
    for (std::size_t rail = 0; rail < network_.rail_count(); ++rail) {
      network_.revive(rail);
    }
  }

  Scenario scenario_;
  test::SimulatedNetwork network_;
  std::mt19937_64 random_;
  std::vector<std::unique_ptr<test::RailsPe>> pes_;
  std::vector<Slot> slots_;
  std::vector<std::vector<std::byte>> sources_;
  OperationCounter counter_;
  std::uint64_t sent_ = 0;
  std::uint64_t received_ = 0;
  std::uint64_t violations_ = 0;
  std::uint64_t passes_ = 0;
  std::uint64_t idle_passes_ = 0;
};

// WEFT_LONG_RUN is not a setting of the library: tests read LONG_RUN.
std::uint64_t message_count() {
  const char* count =
      std::getenv("LONG_RUN_MESSAGES");  // NOLINT(concurrency-mt-unsafe): one thread
  return count == nullptr ? 5'000 : std::strtoull(count, nullptr, 10);
}

TEST(PutSignalOrder, HoldsThroughReorderingAndDelay) {
  for (std::uint64_t seed = 1; seed <= 4; ++seed) {
    EXPECT_EQ(Exchange({.seed = seed}).run(message_count()), 0U) << "seed " << seed;
  }
}

TEST(PutSignalOrder, HoldsWhenRailsRefusePosts) {
  for (std::uint64_t seed = 11; seed <= 14; ++seed) {
    EXPECT_EQ(Exchange({.seed = seed, .faults = {.refuse = 0.3, .depth = 4}}).run(message_count()),
              0U)
        << "seed " << seed;
  }
}

TEST(PutSignalOrder, HoldsWhenRailsDieAndReturn) {
  for (std::uint64_t seed = 21; seed <= 28; ++seed) {
    EXPECT_EQ(
        Exchange({.seed = seed, .faults = {.delay = 0.6}, .kill_rails = true}).run(message_count()),
        0U)
        << "seed " << seed;
  }
}

TEST(PutSignalOrder, HoldsWithoutImmediateData) {
  for (std::uint64_t seed = 31; seed <= 34; ++seed) {
    EXPECT_EQ(Exchange({.seed = seed, .faults = {.has_immediate = false}, .kill_rails = true})
                  .run(message_count()),
              0U)
        << "seed " << seed;
  }
}

TEST(PutSignalOrder, HoldsWhenMessagesAreSigned) {
  for (std::uint64_t seed = 51; seed <= 52; ++seed) {
    EXPECT_EQ(
        Exchange({.seed = seed, .faults = {.delay = 0.6}, .kill_rails = true, .is_signed = true})
            .run(message_count()),
        0U)
        << "seed " << seed;
  }
}

TEST(PutSignalOrder, HoldsOnOneRail) {
  EXPECT_EQ(Exchange({.seed = 41, .rails = 1}).run(message_count()), 0U);
}

// `loom run --nics 8 --shredded 1 -- fault_tests --gtest_filter='Emulated/*'`, with
// LONG_RUN_MESSAGES for a long run.
class PutSignalOrderOnNics : public testing::TestWithParam<std::string> {};

TEST_P(PutSignalOrderOnNics, Holds) {
  EXPECT_EQ(Exchange({.emulated = true}).run(message_count()), 0U);
}

GTEST_ALLOW_UNINSTANTIATED_PARAMETERIZED_TEST(PutSignalOrderOnNics);

std::vector<std::string> emulated_personas() {
  const char* persona = std::getenv("LOOM_PERSONA");  // NOLINT(concurrency-mt-unsafe): one thread
  return persona == nullptr ? std::vector<std::string>{} : std::vector<std::string>{persona};
}

INSTANTIATE_TEST_SUITE_P(Emulated, PutSignalOrderOnNics, testing::ValuesIn(emulated_personas()));

}  // namespace
}  // namespace weft::transport::rails
