// The interfaces over emulated NICs whose packets arrive in random order, several for each PE; and
// NICs that die. LONG_RUN_MESSAGES makes the test of order a long one.
#include <gtest/gtest.h>

#include <algorithm>
#include <cstdlib>

#include "tests/plugins/nvshmem/numbered_messages.hpp"
#include "tests/plugins/nvshmem/run_hosts.hpp"
#include "tests/plugins/nvshmem/scenarios.hpp"

namespace weft::plugins::nvshmem {
namespace {

constexpr std::size_t kMiB = std::size_t{1} << 20U;
constexpr int kNicCount = 4;

struct Case {
  const char* persona;
  int interface;
};

std::string name_of(const ::testing::TestParamInfo<Case>& info) {
  std::string name = info.param.persona;
  std::erase(name, '-');
  return name + "Interface" + std::to_string(info.param.interface);
}

class NvshmemOnNics : public ::testing::TestWithParam<Case> {};

TEST_P(NvshmemOnNics, PutsGetsAndAmosDoWhatTheySay) {
  const Nics nics(GetParam().persona, kNicCount, 2);
  HostOptions options{.interface = GetParam().interface, .pe_count = 2, .nics = &nics};
  options.chunk_count = 4;
  run_hosts(options, [](FakeHost& host) {
    check_puts_and_gets(host, kProxyQueue, Blocking::No);
    check_puts_and_gets(host, kHostQueue, Blocking::Yes);
    check_values(host, kProxyQueue);
    check_amos(host);
  });
}

TEST_P(NvshmemOnNics, SignalsComeAfterAllRangesOfTheirData) {
  const Nics nics(GetParam().persona, kNicCount, 2);
  HostOptions options{.interface = GetParam().interface, .pe_count = 2, .nics = &nics};
  options.heap.chunk_bytes = kMiB / 4;
  options.chunk_count = 19;
  run_hosts(options, [](FakeHost& host) { check_put_signals(host, kMiB + kMiB / 2); });
}

INSTANTIATE_TEST_SUITE_P(Nvshmem,
                         NvshmemOnNics,
                         ::testing::Values(Case{"efa-direct", 7},
                                           Case{"efa-direct", 3},
                                           Case{"efa", 5},
                                           Case{"efa", 7},
                                           Case{"cxi", 6},
                                           Case{"cxi", 7},
                                           Case{"verbs", 4},
                                           Case{"verbs", 7}),
                         name_of);

std::uint64_t message_count(std::uint64_t usual) {
  const char* text = std::getenv("LONG_RUN_MESSAGES");  // NOLINT(concurrency-mt-unsafe)
  return text == nullptr ? usual : std::strtoull(text, nullptr, 10);
}

HostOptions options_for(int pe_count, const Nics& nics, std::uint64_t messages) {
  HostOptions options = NumberedMessages::options(kNewestInterface, pe_count, &nics);
  options.limit_s = std::max(50.0, static_cast<double>(messages) / 400);
  return options;
}

// 20,000 from each PE to each other one.
TEST(NvshmemOrder, NoSignalOfFourPesComesEarlyAndNoneIsLost) {
  const Nics nics("efa", kNicCount, 4);
  const std::uint64_t count = message_count(20'000);
  run_hosts(options_for(4, nics, count), [&](FakeHost& host) {
    NumberedMessages messages(host, count);
    messages.run();
    EXPECT_EQ(messages.early_count(), 0U);
  });
}

// Two of four NICs of PE 1, one after the other; the first comes back.
TEST(NvshmemOrder, AllArrivesAlthoughNicsDie) {
  const Nics nics("efa", kNicCount, 2);
  const std::uint64_t count = message_count(4'000);
  run_hosts(options_for(2, nics, count), [&](FakeHost& host) {
    NumberedMessages messages(host, count);
    messages.run([&](int, std::uint64_t number) {
      if (host.pe() != 0) {
        return;
      }
      if (number == count / 4) {
        EXPECT_EQ(run_loom("cut node1/rdmap79s0"), 0);
      } else if (number == count / 2) {
        EXPECT_EQ(run_loom("heal node1/rdmap79s0"), 0);
        EXPECT_EQ(run_loom("cut node1/rdmap81s0"), 0);
      }
    });
    EXPECT_EQ(messages.early_count(), 0U);
  });
}

// One NIC after the other, on one node after the other: each comes back when the next one dies.
TEST(NvshmemOrder, NoSignalOfFourPesComesEarlyAndNoneIsLostAlthoughNicsDie) {
  constexpr int kPeCount = 4;
  const Nics nics("efa", kNicCount, kPeCount);
  const std::uint64_t count = message_count(2'000);
  const std::uint64_t deaths = count < 10'000 ? 3 : 8;
  run_hosts(options_for(kPeCount, nics, count), [&](FakeHost& host) {
    NumberedMessages messages(host, count);
    std::string dead;
    messages.run([&](int source, std::uint64_t number) {
      const std::uint64_t every = count / (deaths + 1);
      if (host.pe() != 0 || source != 1 || number % every != 0 || number / every > deaths) {
        return;
      }
      if (!dead.empty()) {
        EXPECT_EQ(run_loom("heal " + dead), 0);
      }
      const auto death = static_cast<int>(number / every);
      const int nic = 79 + (death + death / kPeCount) % kNicCount;
      dead = "node" + std::to_string(death % kPeCount) + "/rdmap" + std::to_string(nic) + "s0";
      EXPECT_EQ(run_loom("cut " + dead), 0);
    });
    EXPECT_EQ(messages.early_count(), 0U);
  });
}

}  // namespace
}  // namespace weft::plugins::nvshmem
