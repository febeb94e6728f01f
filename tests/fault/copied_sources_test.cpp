// A source that the caller may reuse is what arrives, also where a rail dies and the piece goes out
// again: small blocking puts whose buffer is overwritten as soon as post returns, by seed.
#include <gtest/gtest.h>

#include <array>
#include <cstring>
#include <random>

#include "tests/support/rails_pes.hpp"
#include "tests/support/simulated_network.hpp"

namespace weft::transport::rails {
namespace {

constexpr std::size_t kDataAt = 4096;
constexpr std::size_t kPuts = 4000;
constexpr std::size_t kSlotBytes = 64;
constexpr std::uint32_t kRails = 3;

std::byte pattern(std::size_t put, std::size_t at) {
  return static_cast<std::byte>((put * 2654435761U + at * 31U) >> 5U);
}

class CopiedSources {
 public:
  explicit CopiedSources(std::uint64_t seed)
      : network_(seed, {.delay = 0.7, .refuse = 0.05}), random_(seed) {
    pes_ = test::make_rails_pes(2, kDataAt + kPuts * kSlotBytes, {}, [&](std::uint32_t) {
      RailsTransport::Rails rails;
      for (std::uint32_t i = 0; i < kRails; ++i) {
        rails.push_back(network_.make_rail("nic" + std::to_string(i)));
      }
      return rails;
    });
  }

  // How many puts have arrived as something else than what their caller gave.
  std::size_t run() {
    for (std::size_t put = 0; put < kPuts; ++put) {
      post(put);
      if (put % 100 == 50) {
        network_.kill(random_() % network_.rail_count());
      } else if (put % 100 == 0) {
        revive_all();
      }
    }
    revive_all();
    EXPECT_TRUE(test::progress_until(pes_, [this] { return counter_.is_idle(); }));
    EXPECT_FALSE(counter_.has_failed());
    std::size_t wrong = 0;
    for (std::size_t put = 0; put < kPuts; ++put) {
      wrong += has_arrived(put) ? 0 : 1;
    }
    return wrong;
  }

 private:
  // Around the size up to which the simulated rails inject, which is 32.
  [[nodiscard]] static std::size_t bytes_of(std::size_t put) { return 1 + put % kSlotBytes; }

  void post(std::size_t put) {
    std::array<std::byte, kSlotBytes> source{};
    for (std::size_t at = 0; at < bytes_of(put); ++at) {
      source[at] = pattern(put, at);
    }
    const Operation operation{.kind = OperationKind::Put,
                              .copy_source = true,
                              .peer = Pe(1),
                              .remote = {RegionIndex(0), HeapOffset(kDataAt + put * kSlotBytes)},
                              .local = source.data(),
                              .bytes = bytes_of(put),
                              .counter = &counter_};
    while (pes_[0]->transport->post(operation) == Status::Again) {
      test::progress_all(pes_);
    }
    source.fill(std::byte{0xEE});  // the call is over: the buffer is the caller's again
    test::progress_all(pes_);
  }

  [[nodiscard]] bool has_arrived(std::size_t put) const {
    const std::byte* there = pes_[1]->memory.data() + kDataAt + put * kSlotBytes;
    for (std::size_t at = 0; at < bytes_of(put); ++at) {
      if (there[at] != pattern(put, at)) {
        return false;
      }
    }
    return true;
  }

  void revive_all() {
    for (std::size_t rail = 0; rail < network_.rail_count(); ++rail) {
      network_.revive(rail);
    }
  }

  test::SimulatedNetwork network_;
  std::mt19937_64 random_;
  std::vector<std::unique_ptr<test::RailsPe>> pes_;
  OperationCounter counter_;
};

TEST(CopiedSources, ArriveAsTheyWereWhenRailsDieAndTheCallerHasReusedThem) {
  for (std::uint64_t seed = 1; seed <= 10; ++seed) {
    EXPECT_EQ(CopiedSources(seed).run(), 0U) << "seed " << seed;
  }
}

}  // namespace
}  // namespace weft::transport::rails
