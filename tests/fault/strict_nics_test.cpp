// NICs that take less than fi_getinfo(3) says, as EFA and Slingshot do: a job starts on them, and
// everything arrives. Each case failed before the rails tried their claims at start.
#include <gtest/gtest.h>

#include <algorithm>
#include <array>
#include <thread>

#include <gmock/gmock.h>

#include "src/base/config.hpp"
#include "src/fabric/discovery.hpp"
#include "src/transport/faulty/faulty_rail.hpp"
#include "tests/support/rails_pes.hpp"
#include "tests/support/simulated_network.hpp"

namespace weft::transport::rails {
namespace {

constexpr std::size_t kHeapBytes = 2U << 20U;
constexpr std::uint64_t kSignalAt = 64;
constexpr std::uint64_t kDataAt = 4096;

// Two PEs with two rails each; `faults` by PE.
class StrictPes {
 public:
  StrictPes(const std::array<const char*, 2>& faults,
            test::NetworkFaults network,
            RailsOptions options = {})
      : network_(3, network),
        pes_(test::make_rails_pes(2, kHeapBytes, options, [&](std::uint32_t pe) {
          RailsTransport::Rails rails;
          for (std::uint64_t i = 0; i < 2; ++i) {
            rails.push_back(
                std::make_unique<faulty::FaultyRail>(network_.make_rail("nic" + std::to_string(i)),
                                                     faulty::parse_faults(faults[pe]), pe * 8 + i));
          }
          return rails;
        })) {}

  // As weft_init does.
  void warm_up() {
    const std::jthread peer([this](const std::stop_token& stop) {
      while (!stop.stop_requested()) {
        pes_[1]->transport->progress();
      }
    });
    pes_[0]->transport->warm_up(std::array{Pe(1)}, 10);
  }

  [[nodiscard]] const fabric::RailLimits& limits(std::uint32_t pe) const {
    return pes_[pe]->transport->rail(RailIndex(0)).limits();
  }

  // PE 0 to PE 1; true if its quiet ends well.
  bool run(OperationKind kind, const std::vector<std::byte>& source, std::uint64_t signal = 0) {
    OperationCounter counter;
    const Operation operation{.kind = kind,
                              .peer = Pe(1),
                              .remote = {RegionIndex(0), HeapOffset(kDataAt)},
                              .local = const_cast<std::byte*>(source.data()),
                              .bytes = source.size(),
                              .update = {.code = AtomicCode::Set,
                                         .word = {RegionIndex(0), HeapOffset(kSignalAt)},
                                         .operand = signal},
                              .counter = &counter};
    while (pes_[0]->transport->post(operation) == Status::Again) {
      test::progress_all(pes_);
    }
    pes_[0]->transport->flush(Pe(1));
    return test::progress_until(
               pes_, [&] { return counter.is_idle(); }, 200'000) &&
           !counter.has_failed();
  }

  [[nodiscard]] bool has_arrived(const std::vector<std::byte>& source) const {
    return std::equal(source.begin(), source.end(), pes_[1]->memory.begin() + kDataAt);
  }

  [[nodiscard]] std::uint64_t signal() const { return *pes_[1]->word(kSignalAt); }

 private:
  test::SimulatedNetwork network_;
  std::vector<std::unique_ptr<test::RailsPe>> pes_;
};

std::vector<std::byte> bytes_of(std::size_t count) {
  std::vector<std::byte> bytes(count);
  for (std::size_t i = 0; i < count; ++i) {
    bytes[i] = static_cast<std::byte>(i * 131 + i / 256);
  }
  return bytes;
}

TEST(StrictNics, AJobStartsWhereInjectedWritesAreRefused) {
  StrictPes pes({"seed=1,no_inject=1", "seed=2,no_inject=1"}, {});
  EXPECT_EQ(pes.limits(0).inject_write_bytes, 0U);
  EXPECT_GT(pes.limits(0).inject_bytes, 0U) << "messages are injected all the same";
  pes.warm_up();
  for (const std::size_t bytes : {1U, 8U, 32U, 33U, 100'000U}) {
    EXPECT_TRUE(pes.run(OperationKind::Put, bytes_of(bytes)));
    EXPECT_TRUE(pes.has_arrived(bytes_of(bytes)));
  }
}

TEST(StrictNics, SignalsArriveWhereImmediateDataIsRefused) {
  StrictPes pes({"seed=1,no_immediate=1", "seed=2,no_immediate=1"}, {});
  EXPECT_FALSE(pes.limits(0).has_immediate);
  pes.warm_up();
  std::uint64_t number = 0;
  for (const std::size_t bytes : {1U, 1024U, 1025U, 300'000U}) {
    EXPECT_TRUE(pes.run(OperationKind::PutSignal, bytes_of(bytes), ++number));
    EXPECT_EQ(pes.signal(), number);
    EXPECT_TRUE(pes.has_arrived(bytes_of(bytes)));
  }
}

TEST(StrictNics, SignalsArriveWhereOnlyTheTargetCarriesNoImmediateData) {
  StrictPes pes({"", "seed=2,no_immediate=1"}, {});
  EXPECT_TRUE(pes.limits(0).has_immediate);
  EXPECT_FALSE(pes.limits(1).has_immediate);
  EXPECT_TRUE(pes.run(OperationKind::PutSignal, bytes_of(300'000), 7));
  EXPECT_EQ(pes.signal(), 7U);
}

TEST(StrictNics, MessagesFitTheLargestThatANicSends) {
  StrictPes pes({"", ""}, {.message_bytes_max = 700}, {.eager_bytes_max = 4096});
  for (std::uint64_t i = 1; i <= 50; ++i) {
    EXPECT_TRUE(pes.run(OperationKind::PutSignal, bytes_of(i * 20), i));
    EXPECT_EQ(pes.signal(), i);
    EXPECT_TRUE(pes.has_arrived(bytes_of(i * 20)));
  }
}

TEST(StrictNics, PiecesFitTheLargestWriteWhateverThePolicy) {
  for (const Policy& policy : policies()) {
    StrictPes pes({"", ""}, {.rma_bytes_max = 5000}, {.policy = &policy});
    EXPECT_TRUE(pes.run(OperationKind::PutSignal, bytes_of(1U << 20U), 1));
    EXPECT_EQ(pes.signal(), 1U);
    EXPECT_TRUE(pes.has_arrived(bytes_of(1U << 20U)));
  }
}

// As EFA without unsolicited write receive: where no receive is posted, immediate data never
// arrives.
TEST(StrictNics, ImmediatesThatUseReceivesAreTriedWithReceivesPosted) {
  ::testing::internal::CaptureStderr();
  StrictPes pes({"seed=1,no_inject=1", "seed=2,no_inject=1"}, {.immediates_use_receives = true});
  EXPECT_THAT(::testing::internal::GetCapturedStderr(),
              ::testing::HasSubstr("uses up a receive buffer"));
  EXPECT_TRUE(pes.limits(0).has_immediate);
  for (std::uint64_t i = 1; i <= 200; ++i) {  // more than a rail has receives
    ASSERT_TRUE(pes.run(OperationKind::PutSignal, bytes_of(5000), i));
  }
  EXPECT_EQ(pes.signal(), 200U);
}

// On a provider that keeps its word: as if it were one that nobody has tried.
TEST(StrictNics, ClaimsThatHoldAreKept) {
  Config config = load_config([](std::string_view) { return std::nullopt; });
  config.nics = "127.0.0.1";
  std::vector<fabric::NicInfo> nics = fabric::discover(config);
  const auto loopback = std::ranges::find(nics, "127.0.0.1", &fabric::NicInfo::address);
  ASSERT_NE(loopback, nics.end());
  loopback->provider = "nobody's";
  fabric::TrialMemory memory;
  const auto rail = fabric::open_rail(*loopback);
  ASSERT_TRUE(rail->limits().is_claim);
  const fabric::RailLimits claimed = rail->limits();
  fabric::try_claims(*rail, memory);
  EXPECT_FALSE(rail->limits().is_claim);
  EXPECT_TRUE(rail->limits().has_immediate);
  EXPECT_EQ(rail->limits().inject_write_bytes, claimed.inject_write_bytes);
  EXPECT_TRUE(std::ranges::equal(memory.source, memory.dest));
}

}  // namespace
}  // namespace weft::transport::rails
