// What the counters say while rails die, return and refuse: up, warm, errors, retries and sums,
// through a network that does so on purpose. A failing seed is printed.
#include <gtest/gtest.h>

#include <algorithm>
#include <array>
#include <cerrno>
#include <chrono>
#include <functional>
#include <numeric>
#include <thread>

#include "tests/support/rails_pes.hpp"
#include "tests/support/simulated_network.hpp"

namespace weft::transport::rails {
namespace {

constexpr std::size_t kHeapBytes = 1U << 20U;
constexpr std::size_t kBytes = 20'000;
constexpr std::uint32_t kRails = 3;

// All PEs in one thread; rail r of PE p is number p * kRails + r of the network.
class RailCountersJob {
 public:
  explicit RailCountersJob(std::uint32_t pe_count,
                           test::NetworkFaults faults = {},
                           const Policy* policy = find_policy("balanced"))
      : network(17, faults), source_(kBytes) {
    RailsOptions options;
    options.policy = policy;
    options.stripe_bytes_min = 4U << 10U;
    pes = test::make_rails_pes(pe_count, kHeapBytes, options, [&](std::uint32_t pe) {
      RailsTransport::Rails rails;
      for (std::uint32_t i = 0; i < kRails; ++i) {
        rails.push_back(network.make_rail("pe" + std::to_string(pe) + "nic" + std::to_string(i)));
      }
      return rails;
    });
  }

  // Puts, gets and put_signals of PE 0 towards every other, until they are done.
  void exchange() {
    std::vector<OperationCounter> counters(pes.size());
    for (std::uint32_t pe = 1; pe < pes.size(); ++pe) {
      for (const OperationKind kind :
           {OperationKind::Put, OperationKind::Get, OperationKind::PutSignal}) {
        post({.kind = kind,
              .peer = Pe(pe),
              .remote = {RegionIndex(0), HeapOffset(4096)},
              .local = source_.data(),
              .bytes = kBytes,
              .update = {.code = AtomicCode::Add,
                         .word = {RegionIndex(0), HeapOffset(64)},
                         .operand = 1},
              .counter = &counters[pe]});
      }
    }
    EXPECT_TRUE(test::progress_until(pes, [&] {
      for (std::uint32_t pe = 1; pe < pes.size(); ++pe) {
        pes[0]->transport->flush(Pe(pe));
      }
      return std::ranges::all_of(counters, &OperationCounter::is_idle);
    }));
  }

  void exchange_until(const std::function<bool()>& done) {
    // Dead rails are probed four times a second.
    const auto deadline = std::chrono::steady_clock::now() + std::chrono::seconds(30);
    while (!done() && std::chrono::steady_clock::now() < deadline) {
      exchange();
    }
    EXPECT_TRUE(done());
  }

  [[nodiscard]] const RailCounters& rail(std::uint32_t pe, std::uint32_t rail) const {
    return pes[pe]->counters[rail];
  }

  [[nodiscard]] std::vector<std::uint32_t> ups(std::uint32_t pe) const {
    std::vector<std::uint32_t> all;
    for (const RailCounters& each : pes[pe]->counters) {
      all.push_back(each.up);
    }
    return all;
  }

  template <typename Counters>
  static std::uint64_t sum(const std::vector<Counters>& all, std::uint64_t Counters::* which) {
    return std::accumulate(
        all.begin(), all.end(), std::uint64_t{0},
        [&](std::uint64_t total, const Counters& one) { return total + one.*which; });
  }

  test::SimulatedNetwork network;
  std::vector<std::unique_ptr<test::RailsPe>> pes;

 private:
  void post(const Operation& operation) {
    EXPECT_TRUE(test::progress_until(
        pes, [&] { return pes[0]->transport->post(operation) == Status::Ok; }));
  }

  std::vector<std::byte> source_;
};

TEST(RailCounters, FollowARailThatDiesAndReturns) {
  for (const Policy& policy : policies()) {
    if (policy.name == "single") {
      continue;  // it uses one rail of the three, which must not die here
    }
    SCOPED_TRACE(policy.name);
    RailCountersJob job(3, {}, &policy);
    EXPECT_EQ(job.ups(0), (std::vector<std::uint32_t>{1, 1, 1}));
    job.network.kill(1);
    job.exchange_until([&] { return job.rail(0, 1).up == 0; });
    EXPECT_EQ(job.ups(0), (std::vector<std::uint32_t>{1, 0, 1}));
    EXPECT_GT(job.rail(0, 1).errors, 0U);
    job.network.revive(1);
    job.exchange_until([&] { return job.rail(0, 1).up == 1; });
    EXPECT_EQ(job.ups(0), (std::vector<std::uint32_t>{1, 1, 1}));
  }
}

TEST(RailCounters, DoNotBlameARailForOneOfAPeer) {
  RailCountersJob job(2);
  job.network.kill(kRails + 1);  // rail 1 of PE 1
  for (int i = 0; i < 50; ++i) {
    job.exchange();
  }
  EXPECT_EQ(job.ups(0), (std::vector<std::uint32_t>{1, 1, 1}));
}

// Each round of errors takes the provider's timeout, during which operations wait.
TEST(RailCounters, ShowOneRoundOfErrorsOfANicThatDoesNotAnswer) {
  for (const std::uint32_t dead : {1U, kRails + 1}) {
    SCOPED_TRACE(dead);
    RailCountersJob job(2, {.error = EHOSTUNREACH});
    job.exchange();
    job.network.kill(dead);
    const auto errors = [&] { return job.sum(job.pes[0]->counters, &RailCounters::errors); };
    while (errors() == 0) {
      job.exchange();
    }
    const std::uint64_t of_the_first = errors();
    for (int i = 0; i < 50; ++i) {
      job.exchange();
    }
    EXPECT_EQ(errors(), of_the_first);
    if (dead == 1) {
      EXPECT_EQ(job.ups(0), (std::vector<std::uint32_t>{1, 0, 1}));
      job.network.revive(dead);
    }
    job.exchange_until([&] { return job.rail(0, 1).up == 1; });
  }
}

TEST(RailCounters, DoNotCountTheProbesOfADeadRailAsErrors) {
  RailCountersJob job(2);
  job.network.kill(0);
  job.exchange_until([&] { return job.rail(0, 0).up == 0; });
  job.exchange();
  const std::uint64_t errors = job.rail(0, 0).errors;
  const std::uint64_t operations = job.rail(0, 0).tx_operations;
  // Nothing else is under way, and a probe goes out every 250 ms.
  EXPECT_TRUE(test::progress_until(
      job.pes, [&] { return job.rail(0, 0).tx_operations > operations + 3; }, UINT64_MAX));
  EXPECT_EQ(job.rail(0, 0).errors, errors);
  EXPECT_EQ(job.rail(0, 0).up, 0U);
}

TEST(RailCounters, CountAsRetriesWhatTheNicsQueueRefused) {
  RailCountersJob calm(2);
  RailCountersJob crowded(2, {.refuse = 0.3});
  for (RailCountersJob* job : {&calm, &crowded}) {
    for (int i = 0; i < 20; ++i) {
      job->exchange();
    }
    EXPECT_EQ(RailCountersJob::sum(job->pes[0]->counters, &RailCounters::errors), 0U);
  }
  EXPECT_EQ(RailCountersJob::sum(calm.pes[0]->counters, &RailCounters::retries), 0U);
  EXPECT_GT(RailCountersJob::sum(crowded.pes[0]->counters, &RailCounters::retries), 0U);
}

// The rails of this side and those of the peers have carried the same bytes, whatever died in
// between.
TEST(RailCounters, AgreeWithTheTableOfPeers) {
  RailCountersJob job(3, {.delay = 0.5});
  for (std::size_t i = 0; i < 60; ++i) {
    if (i % 10 == 5) {
      job.network.kill(i % (3 * kRails));
    }
    job.exchange();
    if (i % 10 == 9) {
      job.network.revive((i - 4) % (3 * kRails));
    }
  }
  for (const auto& pe : job.pes) {
    EXPECT_EQ(RailCountersJob::sum(pe->counters, &RailCounters::tx_bytes),
              RailCountersJob::sum(pe->peer_counters, &PeerRailCounters::put_bytes));
    EXPECT_EQ(RailCountersJob::sum(pe->counters, &RailCounters::rx_bytes),
              RailCountersJob::sum(pe->counters, &RailCounters::rx_message_bytes) +
                  RailCountersJob::sum(pe->peer_counters, &PeerRailCounters::get_bytes));
    // An exchange ends with its own operations; a probe or an acknowledgement may still be under
    // way.
    EXPECT_TRUE(test::progress_until(job.pes, [&] {
      return RailCountersJob::sum(pe->counters, &RailCounters::outstanding_bytes) == 0;
    }));
  }
  for (std::size_t i = 0; i < kRails; ++i) {
    EXPECT_EQ(job.pes[0]->peer_counters[i].put_bytes, 0U) << "to itself";
    EXPECT_GT(job.pes[0]->peer_counters[2 * kRails + i].get_bytes, 0U);
  }
}

TEST(RailCounters, MayBeReadByAnotherThreadAndOnlyGrow) {
  RailCountersJob job(2, {.refuse = 0.1});
  std::uint64_t went_back = 0;
  {
    const std::jthread reader([&](const std::stop_token& stop) {
      std::array<RailCounters, kRails> before{};
      while (!stop.stop_requested()) {
        for (std::uint32_t i = 0; i < kRails; ++i) {
          const RailCounters now = read_counters(job.rail(0, i));
          went_back += now.tx_bytes < before[i].tx_bytes || now.rx_bytes < before[i].rx_bytes ||
                               now.tx_operations < before[i].tx_operations ||
                               now.retries < before[i].retries
                           ? 1
                           : 0;
          before[i] = now;
        }
      }
    });
    for (int i = 0; i < 200; ++i) {
      job.exchange();
    }
  }
  EXPECT_EQ(went_back, 0U);
}

TEST(RailCounters, CountASignalOnceOnEachSide) {
  RailCountersJob job(2);
  for (int i = 0; i < 25; ++i) {
    job.exchange();
  }
  EXPECT_EQ(*job.pes[1]->word(64), 25U);
  EXPECT_EQ(RailCountersJob::sum(job.pes[0]->counters, &RailCounters::tx_signals), 25U);
  EXPECT_EQ(RailCountersJob::sum(job.pes[1]->counters, &RailCounters::rx_signals), 25U);
}

TEST(RailCounters, SayWarmOnceAllConnectionsOfTheRailAreOpen) {
  for (const Policy* policy :
       {find_policy("balanced"), find_policy("coupled"), find_policy("single")}) {
    SCOPED_TRACE(policy->name);
    RailCountersJob job(2, {}, policy);
    for (std::uint32_t i = 0; i < kRails; ++i) {
      EXPECT_EQ(job.rail(0, i).warm, 0U);
    }
    job.network.kill(kRails + 2);
    const std::array peer{Pe(1)};
    std::jthread other([&](const std::stop_token& stop) {
      while (!stop.stop_requested()) {
        job.pes[1]->transport->progress();
      }
    });
    job.pes[0]->transport->warm_up(peer, 20);
    other.request_stop();
    other.join();
    // Each rail of a balanced PE uses all rails of the peer; a coupled one only its own.
    EXPECT_EQ(job.rail(0, 0).warm, policy == find_policy("balanced") ? 0U : 1U);
    EXPECT_EQ(job.rail(0, 2).warm, 0U);
    job.network.revive(kRails + 2);
    if (policy == find_policy("balanced")) {
      job.exchange_until([&] { return job.rail(0, 2).warm == 1; });
    }
  }
}

}  // namespace
}  // namespace weft::transport::rails
