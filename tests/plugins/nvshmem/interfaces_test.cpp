// Every operation on every interface of NVSHMEM, over TCP on loopback: PEs are processes, chunks of
// the heap are host memory, and a thread that spins stands for the host library's proxy.
#include <gtest/gtest.h>

#include <cstring>

#include "tests/plugins/nvshmem/run_hosts.hpp"
#include "tests/plugins/nvshmem/scenarios.hpp"

namespace weft::plugins::nvshmem {
namespace {

class NvshmemInterface : public ::testing::TestWithParam<int> {
 protected:
  [[nodiscard]] static HostOptions options(int pe_count = 2) {
    return {.interface = GetParam(), .pe_count = pe_count};
  }

  [[nodiscard]] static HostOptions with_chunks(std::size_t count, std::size_t bytes) {
    HostOptions options = NvshmemInterface::options();
    options.chunk_count = count;
    options.heap.chunk_bytes = bytes;
    return options;
  }
};

constexpr std::size_t kMiB = std::size_t{1} << 20U;

TEST_P(NvshmemInterface, BeginsAndEndsWithoutTraffic) {
  run_hosts(options(3), [](FakeHost& host) {
    EXPECT_EQ(host.transport().head().interface_number, host.interface() * kInterfaceFactor);
  });
}

TEST_P(NvshmemInterface, PutsAndGetsOfKernelsMoveEveryByte) {
  run_hosts(with_chunks(4, kMiB),
            [](FakeHost& host) { check_puts_and_gets(host, kProxyQueue, Blocking::No); });
}

TEST_P(NvshmemInterface, BlockingPutsAndGetsAreCompleteWhenTheyReturn) {
  run_hosts(with_chunks(4, kMiB),
            [](FakeHost& host) { check_puts_and_gets(host, kHostQueue, Blocking::Yes); });
}

TEST_P(NvshmemInterface, PutsAndGetsOfTheProgramAreCompleteAfterQuiet) {
  HostOptions options = with_chunks(4, kMiB);
  options.heap.is_shared_memory = false;
  run_hosts(options, [](FakeHost& host) { check_puts_and_gets(host, kHostQueue, Blocking::No); });
}

TEST_P(NvshmemInterface, ValuesAreTakenBeforeTheCallReturns) {
  run_hosts(options(3), [](FakeHost& host) {
    check_values(host, kProxyQueue);
    check_values(host, kHostQueue);
  });
}

TEST_P(NvshmemInterface, AmosDoWhatTheirCodesSay) {
  run_hosts(options(3), [](FakeHost& host) { check_amos(host); });
}

TEST_P(NvshmemInterface, SignalsComeAfterAllRangesOfTheirData) {
  HostOptions many = with_chunks(31, kMiB / 4);
  many.pe_count = 4;
  run_hosts(many, [](FakeHost& host) { check_put_signals(host, kMiB + kMiB / 2); });
}

// PE 0 writes into a slot, then, behind a fence, the slot's number into a word.
void write_in_order(Operations& operations, FakeHost& host, std::uint64_t first) {
  constexpr std::uint64_t kSlotBytes = 8192;
  std::byte* numbers = host.heap().at(128);  // each put has a source of its own
  for (std::uint64_t i = 0; i < 64; ++i) {
    std::byte* source = host.heap().at(kMiB / 2 + i * 64);
    fill(source, 64, 0, first + i);
    const std::uint64_t number = first + i;
    std::memcpy(numbers + i * 8, &number, sizeof(number));
    operations.put(1, {.offset = kMiB + i * kSlotBytes, .local = source, .bytes = 64});
    operations.fence(1);
    operations.put(1, {.offset = 0, .local = numbers + i * 8, .bytes = 8});
    operations.fence(1);
  }
  operations.quiet(1);
}

// PE 1 looks at each slot whose number, or a later one, it has seen in the word.
void watch_order(FakeHost& host, std::uint64_t first) {
  constexpr std::uint64_t kSlotBytes = 8192;
  std::uint64_t checked = first;
  host.operations().wait_until(
      [&] {
        const std::uint64_t seen = host.word(0);
        for (; checked <= seen; ++checked) {
          const std::uint64_t slot = kMiB + (checked - first) * kSlotBytes;
          EXPECT_EQ(wrong_bytes(host.heap().at(slot), 64, 0, checked), 0U)
              << "number " << checked << " overtook its slot; " << seen << " was seen";
        }
        return seen == first + 63;
      },
      "the last number");
}

TEST_P(NvshmemInterface, AFenceOrdersPutsToOnePe) {
  run_hosts(with_chunks(2, kMiB), [](FakeHost& host) {
    for (std::uint64_t batch = 0; batch < 8; ++batch) {
      const std::uint64_t first = 1 + batch * 64;
      if (host.pe() == 0) {
        on_queue(host, batch % 2 == 0 ? kProxyQueue : kHostQueue,
                 [&](Operations& operations) { write_in_order(operations, host, first); });
      } else {
        watch_order(host, first);
      }
      host.meet();
      if (host.pe() == 1) {
        EXPECT_EQ(host.word(0), first + 63) << "an earlier put was seen last";
      }
      host.meet();  // before the next batch changes it
    }
  });
}

// qp_create: the default queue remains the only one.
TEST_P(NvshmemInterface, MoreQueuesAreNotMade) {
  if (GetParam() == 3) {
    GTEST_SKIP() << "interface 3 has no queues to create";
  }
  run_hosts(options(), [](FakeHost& host) {
    std::vector<int> indices{kProxyQueue, kProxyQueue, kProxyQueue};
    EXPECT_EQ(host.transport().create_queues(indices), 0);
    EXPECT_EQ(indices, (std::vector<int>{kProxyQueue, kProxyQueue, kProxyQueue}));
    check_values(host, kProxyQueue);
  });
}

INSTANTIATE_TEST_SUITE_P(Nvshmem, NvshmemInterface, ::testing::ValuesIn(kInterfaces));

}  // namespace
}  // namespace weft::plugins::nvshmem
