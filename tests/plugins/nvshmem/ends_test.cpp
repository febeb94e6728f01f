// How a job ends, and how it does not begin: finalize in any order, numbers that nobody knows,
// rails that do not open, and PEs that have another transport.
#include <gtest/gtest.h>

#include <algorithm>
#include <chrono>

#include <gmock/gmock.h>

#include "tests/plugins/nvshmem/run_hosts.hpp"
#include "tests/plugins/nvshmem/scenarios.hpp"

namespace weft::plugins::nvshmem {
namespace {

using ::testing::HasSubstr;

class NvshmemEnds : public ::testing::TestWithParam<int> {
 protected:
  [[nodiscard]] static HostOptions options() {
    return {.interface = GetParam(), .pe_count = 3, .ends_itself = true};
  }
};

// Each tells each over the transport that it is there, as the host library's last barrier does.
void tell_all(FakeHost& host, Operations& proxy) {
  const auto place = static_cast<std::uint64_t>(host.pe()) * 8;
  const AmoCall set{.code = kAmoSignal, .element_bytes = 8, .is_float = false};
  for (int peer = 0; peer < host.pe_count(); ++peer) {
    proxy.amo(peer, {.call = set, .offset = place, .operand = 1});
  }
  proxy.wait_until(
      [&] {
        for (int peer = 0; peer < host.pe_count(); ++peer) {
          if (host.word(static_cast<std::uint64_t>(peer) * 8) != 1) {
            return false;
          }
        }
        return true;
      },
      "all PEs");
}

// What the late one still wants from the others, who have joined their proxy threads: answers to
// its last operations.
TEST_P(NvshmemEnds, APeThatIsLateIsServedByThoseInFinalize) {
  run_hosts(options(), [](FakeHost& host) {
    host.on_proxy([&](Operations& proxy) { tell_all(host, proxy); });
    if (host.pe() == 1) {
      std::this_thread::sleep_for(std::chrono::milliseconds(300));
    }
    host.on_proxy([](Operations& proxy) { proxy.quiet_all(); });
    host.finalize();
  });
}

TEST_P(NvshmemEnds, OneThatFinalizesLateHoldsUpNobodyForLong) {
  run_hosts(options(), [](FakeHost& host) {
    check_values(host, kProxyQueue);
    const auto begin = std::chrono::steady_clock::now();
    host.end(std::chrono::milliseconds(host.pe() == 1 ? 300 : 0));
    EXPECT_LT(std::chrono::steady_clock::now() - begin, std::chrono::seconds(10));
  });
}

INSTANTIATE_TEST_SUITE_P(Nvshmem, NvshmemEnds, ::testing::ValuesIn(kInterfaces));

std::size_t line_count(const std::string& text) {
  return static_cast<std::size_t>(std::ranges::count(text, '\n'));
}

TEST(NvshmemRefusals, NumbersOfOtherInterfacesAreRefusedInOneLine) {
  for (const auto& [stub, number] : {std::pair(7, 80'000), std::pair(3, 20'000)}) {
    const auto outcomes =
        run_processes({.pe_count = 1, .limit_s = 20, .variables = {}},
                      [stub = stub, number = number](Board&, int) {
                        EXPECT_EQ(LoadedTransport(stub, number).status(), kHostInvalidValue);
                      });
    expect_success(outcomes);
    EXPECT_THAT(outcomes[0].errors, HasSubstr(std::to_string(number / kInterfaceFactor)));
    EXPECT_EQ(line_count(outcomes[0].errors), 1U) << outcomes[0].errors;
  }
}

// The layout and the calls follow the number, whatever the name of the file.
TEST(NvshmemRefusals, ANumberThatIsNotTheStubsIsKeptOrRefused) {
  expect_success(run_processes({.pe_count = 1, .limit_s = 20, .variables = {}}, [](Board&, int) {
    const LoadedTransport transport(7, 50'000);
    if (transport.status() == 0) {
      EXPECT_EQ(transport.head().interface_number, 50'000);
    } else {
      EXPECT_EQ(transport.status(), kHostInvalidValue);
    }
  }));
}

// Connects, expects that to fail, and ends as the host library does then.
void expect_no_connection(Board& board, int pe, const HostOptions& options) {
  FakeHost host(board, pe, options);
  EXPECT_NE(host.connect(), 0);
  board.left_connect(pe);
  EXPECT_EQ(host.transport().finalize(), 0);
}

class NvshmemConnect : public ::testing::TestWithParam<int> {};

TEST_P(NvshmemConnect, FailsOnAllPesWhereOneHasNoRails) {
  const HostOptions options{.interface = GetParam(), .pe_count = 3};
  ProcessesOptions processes = processes_of(options);
  processes.limit_s = 30;
  processes.variables = [usual = processes.variables](int pe) {
    Variables variables = usual(pe);
    if (pe == 1) {
      variables["WEFT_NICS"] = "nosuchnic";
    }
    return variables;
  };
  const auto outcomes = run_processes(
      processes, [&](Board& board, int pe) { expect_no_connection(board, pe, options); });
  expect_success(outcomes);
  for (const PeOutcome& outcome : outcomes) {
    EXPECT_THAT(outcome.errors, HasSubstr("PE 1"));
  }
  EXPECT_THAT(outcomes[1].errors, HasSubstr("nosuchnic"));
}

TEST_P(NvshmemConnect, FailsWhereOnePeHasAnotherTransport) {
  const HostOptions options{.interface = GetParam(), .pe_count = 3};
  ProcessesOptions processes = processes_of(options);
  processes.limit_s = 30;
  const auto outcomes = run_processes(processes, [&](Board& board, int pe) {
    if (pe == 2) {
      board.take_part_with_zeros(pe);
    } else {
      expect_no_connection(board, pe, options);
    }
  });
  expect_success(outcomes);
  for (const int pe : {0, 1}) {
    EXPECT_THAT(outcomes[static_cast<std::size_t>(pe)].errors, HasSubstr("PE 2"));
  }
}

// It needs no NIC, and says nothing.
TEST_P(NvshmemConnect, NeedsNoRailsForOnePe) {
  const HostOptions options{.interface = GetParam(), .pe_count = 1};
  ProcessesOptions processes = processes_of(options);
  processes.limit_s = 20;
  processes.variables = [usual = processes.variables](int pe) {
    Variables variables = usual(pe);
    variables["WEFT_NICS"] = "nosuchnic";
    return variables;
  };
  const auto outcomes = run_processes(processes, [&](Board& board, int pe) {
    FakeHost host(board, pe, options);
    ASSERT_EQ(host.connect(), 0);
    host.start();
    check_values(host, kProxyQueue);
    host.end();
  });
  expect_success(outcomes);
  EXPECT_EQ(outcomes[0].errors, "");
}

INSTANTIATE_TEST_SUITE_P(Nvshmem, NvshmemConnect, ::testing::Values(3, 5, 7));

}  // namespace
}  // namespace weft::plugins::nvshmem
