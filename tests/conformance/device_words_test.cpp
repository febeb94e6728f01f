// Regions of GPU memory whose words peers update: signals, atomics and small data. The memory is
// the host's, but under the addresses that operations name nobody may touch it: whoever forgets
// ends by a signal.
#include <gtest/gtest.h>

#include <array>
#include <numeric>
#include <string_view>
#include <vector>

#include "src/base/config.hpp"
#include "src/base/error.hpp"
#include "src/fabric/discovery.hpp"
#include "src/transport/atomic_update.hpp"
#include "tests/support/guarded_memory.hpp"
#include "tests/support/rails_pes.hpp"
#include "tests/support/simulated_network.hpp"

namespace weft::test {
namespace {

using namespace transport;
using rails::RailsTransport;

constexpr std::size_t kBytes = 256 << 10;
constexpr RegionIndex kChunk{1};
constexpr std::uint64_t kData = 4096;

enum class Nics { Simulated, Loopback, LoopbackRegistering };

struct Case {
  const char* name;
  NetworkFaults faults;
  Nics nics = Nics::Simulated;
};

RailsTransport::Rails loopback_rails(bool registers_all) {
  Config config = load_config([](std::string_view) { return std::nullopt; });
  config.nics = "127.0.0.1,127.0.0.2";
  RailsTransport::Rails rails;
  for (const fabric::NicInfo& nic : fabric::discover(config)) {
    if (nic.loopback && nic.address.starts_with("127.0.0.")) {
      rails.push_back(fabric::open_rail(nic, {.registers_all = registers_all}));
    }
  }
  return rails;
}

class DeviceWords : public ::testing::TestWithParam<Case> {
 protected:
  struct Gpu {
    GuardedMemory memory{kBytes};
    GuardedWords words;
  };

  void SetUp() override {
    for (std::size_t pe = 0; pe < 2; ++pe) {
      offer(pe, gpus_[pe].words);
    }
  }

  void offer(std::size_t pe, gpu::WordMemory& words) {
    const auto keys = pes_[pe]->transport->own_regions().offer(
        kChunk, {.memory = gpus_[pe].memory.memory(), .no_dma_buf = "it is the host's"}, words);
    pes_[1 - pe]->transport->own_regions().enter(Pe(static_cast<std::uint32_t>(pe)), kChunk, keys);
  }

  static heap::Place at(std::uint64_t offset) { return {kChunk, HeapOffset(offset)}; }

  void post(Operation operation) {
    operation.peer = Pe(1);
    operation.counter = &counter_;
    Status status = pes_[0]->transport->post(operation);
    for (int pass = 0; status == Status::Again && pass < 1'000'000; ++pass) {
      progress_all(pes_);
      status = pes_[0]->transport->post(operation);
    }
    ASSERT_EQ(status, Status::Ok);
  }

  void finish() {
    pes_[0]->transport->flush(Pe(1));
    ASSERT_TRUE(progress_until(pes_, [&] { return counter_.is_idle(); }));
    ASSERT_FALSE(counter_.has_failed());
  }

  void run(const Operation& operation) {
    post(operation);
    finish();
  }

  // Of PE 1.
  [[nodiscard]] std::uint64_t word(std::uint64_t offset) {
    return gpus_[1].words.load(gpus_[1].memory.memory().data() + offset, 8);
  }

  void fill(std::byte* memory, std::size_t bytes, std::uint64_t seed) {
    for (std::size_t i = 0; i < bytes; ++i) {
      memory[i] = static_cast<std::byte>(seed * 7 + i * 3 + (i >> 8U));
    }
  }

  [[nodiscard]] std::size_t wrong_bytes(std::uint64_t offset,
                                        std::size_t bytes,
                                        std::uint64_t seed) {
    std::vector<std::byte> wanted(bytes);
    std::vector<std::byte> found(bytes);
    fill(wanted.data(), bytes, seed);
    gpus_[1].words.read(found.data(), gpus_[1].memory.memory().data() + offset, bytes);
    std::size_t wrong = 0;
    for (std::size_t i = 0; i < bytes; ++i) {
      wrong += wanted[i] != found[i] ? 1 : 0;
    }
    return wrong;
  }

  [[nodiscard]] Operation put_signal(void* local, std::size_t bytes, std::uint64_t value) {
    return {.kind = OperationKind::PutSignal,
            .on_device = GuardedMemory::find(local) != nullptr,
            .remote = at(kData),
            .local = local,
            .bytes = bytes,
            .update = {.code = AtomicCode::Set, .word = at(0), .operand = value}};
  }

  SimulatedNetwork network_{11, GetParam().faults};
  std::array<Gpu, 2> gpus_;
  std::vector<std::unique_ptr<RailsPe>> pes_ =
      make_rails_pes(2, 8192, {.eager_bytes_max = 256}, [this](std::uint32_t) {
        RailsTransport::Rails rails;
        if (GetParam().nics == Nics::Simulated) {
          rails.push_back(network_.make_rail("nic0"));
          rails.push_back(network_.make_rail("nic1"));
        } else {
          rails = loopback_rails(GetParam().nics == Nics::LoopbackRegistering);
        }
        for (std::unique_ptr<fabric::Rail>& rail : rails) {
          rail = std::make_unique<GuardedRail>(std::move(rail));
        }
        return rails;
      });
  OperationCounter counter_;
};

TEST_P(DeviceWords, EachAtomicDoesWhatItDoesInHostMemory) {
  std::uint64_t seed = 0x0123'4567'89AB'CDEF;
  for (std::uint8_t code = 0; code < kAtomicCodeCount; ++code) {
    for (const std::uint8_t width : std::array<std::uint8_t, 3>{2, 4, 8}) {
      for (const bool fetches : {true, false}) {
        seed = seed * 6364136223846793005U + 1442695040888963407U;
        std::array<std::uint64_t, 2> host{seed, seed ^ 0x55};
        gpus_[1].words.write(gpus_[1].memory.memory().data() + 64, host.data(), sizeof(host));
        const AtomicUpdate update{.code = static_cast<AtomicCode>(code),
                                  .element_bytes = width,
                                  .word = at(64),
                                  .operand = seed >> 3U,
                                  .compare = (seed & 1) != 0 ? seed : 3};
        std::uint64_t result = 42;
        run({.kind = OperationKind::Atomic,
             .update = update,
             .result = fetches ? &result : nullptr});
        const std::uint64_t old = apply_atomic(host.data(), update);
        EXPECT_EQ(result, fetches ? old : 42) << int{code} << " of " << int{width};
        EXPECT_EQ(word(64), host[0]) << int{code} << " of " << int{width};
        EXPECT_EQ(word(72), host[1]) << "the word behind it";
      }
    }
  }
}

TEST_P(DeviceWords, SignalsComeAfterTheirDataWhereverItIs) {
  std::vector<std::byte> source(100'000);
  std::uint64_t round = 0;
  for (const std::size_t bytes : {1UL, 8UL, 200UL, 257UL, 5000UL, 100'000UL}) {
    for (const bool on_device : {false, true}) {
      ++round;
      std::byte* local = on_device ? gpus_[0].memory.memory().data() + kData : source.data();
      fill(GuardedMemory::reached(local), bytes, round);
      post(put_signal(local, bytes, round));
      pes_[0]->transport->flush(Pe(1));
      ASSERT_TRUE(progress_until(pes_, [&] { return word(0) == round; }));
      EXPECT_EQ(wrong_bytes(kData, bytes, round), 0U) << bytes << " bytes";
      finish();
    }
  }
  EXPECT_GE(gpus_[1].words.counts().flushes, round) << "NICs' writes are shown before each word";
}

TEST_P(DeviceWords, AListOfShortAndLongRangesArrivesBeforeItsSignal) {
  std::vector<std::byte> source(40'000);
  const std::array<std::size_t, 6> parts{8, 3000, 100, 16, 20'000, 1};
  for (std::uint64_t round = 1; round <= 20; ++round) {
    fill(source.data(), source.size(), round);
    std::vector<GatherSegment> segments;
    std::size_t offset = 0;
    for (const std::size_t bytes : parts) {
      segments.push_back({at(kData + offset), source.data() + offset, bytes});
      offset += bytes;
    }
    Operation operation = put_signal(source.data(), offset, round);
    operation.segments = segments;
    post(operation);
    pes_[0]->transport->flush(Pe(1));
    ASSERT_TRUE(progress_until(pes_, [&] { return word(0) == round; }));
    ASSERT_EQ(wrong_bytes(kData, offset, round), 0U);
    finish();
  }
}

TEST_P(DeviceWords, UpdatesOfOnePeerAreAppliedOnceEachWhileRailsDie) {
  constexpr std::uint64_t kCount = 400;
  const bool may_die = GetParam().nics == Nics::Simulated;
  std::byte* source = gpus_[0].memory.memory().data() + kData;
  fill(GuardedMemory::reached(source), 20'000, 1);
  for (std::uint64_t i = 0; i < kCount; ++i) {
    Operation operation = put_signal(source, 1000 + 40 * (i % 400), 1);
    operation.update.code = AtomicCode::Add;
    post(operation);
    post({.kind = OperationKind::Atomic,
          .update = {.code = AtomicCode::Add, .element_bytes = 4, .word = at(8), .operand = 3}});
    if (may_die && i == kCount / 4) {
      network_.kill(2);  // PE 1's first NIC
    } else if (may_die && i == kCount / 2) {
      network_.revive(2);
    }
  }
  finish();
  EXPECT_EQ(word(0), kCount);
  EXPECT_EQ(word(8), 3 * kCount);
}

TEST_P(DeviceWords, GetsBringDataIntoTheMemory) {
  constexpr std::size_t kLength = 30'000;
  fill(gpus_[1].memory.reached(kData), kLength, 9);
  run({.kind = OperationKind::Get,
       .on_device = true,
       .remote = at(kData),
       .local = gpus_[0].memory.memory().data(),
       .bytes = kLength});
  EXPECT_EQ(std::memcmp(gpus_[0].memory.reached(), gpus_[1].memory.reached(kData), kLength), 0);
}

TEST_P(DeviceWords, AValueOnTheStackIsPutThere) {
  {
    std::uint64_t value = 0x1122'3344;
    post({.kind = OperationKind::Put,
          .copy_source = true,
          .remote = at(80),
          .local = &value,
          .bytes = sizeof(value)});
    value = 0;
  }
  finish();
  EXPECT_EQ(word(80), 0x1122'3344U);
}

TEST_P(DeviceWords, OfMemoryThatWentNothingIsUpdated) {
  pes_[1]->transport->own_regions().withdraw(kChunk);
  std::uint64_t result = 7;
  run({.kind = OperationKind::Atomic,
       .update = {.code = AtomicCode::Add, .word = at(0), .operand = 1},
       .result = &result});
  EXPECT_EQ(result, 0U);
  EXPECT_EQ(pes_[1]->transport->dropped().updates, 1U);
  EXPECT_EQ(gpus_[1].words.counts().writes, 0U);
  offer(1, gpus_[1].words);
  run({.kind = OperationKind::Atomic,
       .update = {.code = AtomicCode::Add, .word = at(0), .operand = 1}});
  EXPECT_EQ(word(0), 1U);
}

TEST_P(DeviceWords, ASetReadsTheWordOnlyWhereTheWayNeedsIt) {
  const Operation set{.kind = OperationKind::Atomic,
                      .update = {.code = AtomicCode::Set, .word = at(0), .operand = 1}};
  run(set);
  EXPECT_EQ(gpus_[1].words.counts().reads, 1U);
  pes_[1]->transport->own_regions().withdraw(kChunk);
  GuardedWords mapped(false);
  offer(1, mapped);
  run(set);
  EXPECT_EQ(mapped.counts().reads, 0U);
  EXPECT_EQ(mapped.counts().writes, 1U);
  pes_[1]->transport->own_regions().withdraw(kChunk);
}

INSTANTIATE_TEST_SUITE_P(Networks,
                         DeviceWords,
                         ::testing::Values(Case{"Plain", {}},
                                           Case{"Slow", {.delay = 0.8, .refuse = 0.2, .depth = 8}},
                                           Case{"WithoutImmediateData", {.has_immediate = false}},
                                           Case{"SmallPieces", {.rma_bytes_max = 3000}}),
                         [](const auto& one) { return one.param.name; });

// As in rails_transport_test.cpp.
#if !defined(__SANITIZE_ADDRESS__)
INSTANTIATE_TEST_SUITE_P(Loopback,
                         DeviceWords,
                         ::testing::Values(Case{"Plain", {}, Nics::Loopback},
                                           Case{"Registering", {}, Nics::LoopbackRegistering}),
                         [](const auto& one) { return one.param.name; });
#endif

TEST(DeviceWordsRefused, TheNicAndItsReasonAreNamedAndNothingStaysRegistered) {
  SimulatedNetwork network(1, {});
  const auto pes = make_rails_pes(2, 4096, {}, [&](std::uint32_t) {
    RailsTransport::Rails rails;
    rails.push_back(std::make_unique<GuardedRail>(network.make_rail("nic0")));
    rails.push_back(std::make_unique<GuardedRail>(network.make_rail("nic1", false)));
    return rails;
  });
  const std::size_t before = network.region_count();
  const GuardedMemory memory(4096);
  GuardedWords words;
  try {
    static_cast<void>(
        pes[0]->transport->own_regions().offer(kChunk, {.memory = memory.memory()}, words));
    FAIL() << "nobody was told";
  } catch (const Error& error) {
    EXPECT_NE(std::string_view(error.what()).find("the NIC nic1"), std::string_view::npos);
    EXPECT_NE(std::string_view(error.what()).find("this rail does not take it"),
              std::string_view::npos);
  }
  EXPECT_EQ(network.region_count(), before);
}

}  // namespace
}  // namespace weft::test
