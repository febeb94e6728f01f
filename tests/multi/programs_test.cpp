// PEs as processes: programs on the public API alone, started by weft-run.
#include <gtest/gtest.h>

#include <algorithm>
#include <array>
#include <fstream>
#include <sstream>
#include <thread>
#include <vector>

#include <gmock/gmock.h>

#include "tests/multi/launch.hpp"
#include "tests/support/paths.hpp"

namespace weft::test {
namespace {

using ::testing::HasSubstr;

// WEFT_NODE_SIZE=1 makes every PE a node of its own: the same program over rails.
constexpr const char* kRails =
    "WEFT_NODE_SIZE=1 WEFT_PROVIDER=tcp WEFT_NICS=127.0.0.1,127.0.0.2 WEFT_NICS_SHARED=yes";
constexpr const char* kPairs =
    "WEFT_NODE_SIZE=2 WEFT_PROVIDER=tcp WEFT_NICS=127.0.0.1,127.0.0.2 WEFT_NICS_SHARED=yes";

void expect_success(const Outcome& outcome, const char* line) {
  EXPECT_EQ(outcome.status, 0) << outcome.text;
  EXPECT_EQ(outcome.text, line);
}

constexpr const char* kToured = "api_tour: every function did what it says\n";

TEST(ApiTour, EveryFunctionDoesWhatItSaysWithOnePeAlone) {
  expect_success(launch(1, "api_tour"), kToured);
}

TEST(ApiTour, EveryFunctionDoesWhatItSaysOnOneNode) {
  expect_success(launch(2, "api_tour"), kToured);
  expect_success(launch(5, "api_tour"), kToured);
}

TEST(ApiTour, EveryFunctionDoesWhatItSaysWithAllChecks) {
  expect_success(launch(3, "api_tour", "WEFT_CHECK_LEVEL=2"), kToured);
}

TEST(ApiTour, EveryFunctionDoesWhatItSaysBetweenNodes) {
  expect_success(launch(2, "api_tour", kRails), kToured);
}

TEST(ApiTour, EveryFunctionDoesWhatItSaysOnAMixtureOfBoth) {
  expect_success(launch(4, "api_tour", kPairs), kToured);
}

TEST(Moe, SendsAtMostTwoWritesToEachPeerOfAnotherNode) {
  expect_success(launch(2, "moe_writes"), "moe_writes ok\n");
  expect_success(launch(2, "moe_writes", kRails), "moe_writes ok\n");
  expect_success(launch(4, "moe_writes", kRails), "moe_writes ok\n");
  expect_success(launch(4, "moe_writes", kPairs), "moe_writes ok\n");
}

TEST(Globals, AreSymmetricOnANodeAndBetweenNodes) {
  const std::string yes = "WEFT_SYMMETRIC_GLOBALS=yes ";
  expect_success(launch(1, "globals", yes), "globals ok\n");
  expect_success(launch(4, "globals", yes), "globals ok\n");
  expect_success(launch(4, "globals", yes + "WEFT_CHECK_LEVEL=2"), "globals ok\n");
  expect_success(launch(3, "globals", yes + kRails), "globals ok\n");
  expect_success(launch(4, "globals", yes + kPairs), "globals ok\n");
}

TEST(Globals, AreRefusedWithAHintWhereTheyAreNotAskedFor) {
  const Outcome outcome = launch(2, "globals");
  EXPECT_NE(outcome.status, 0);
  EXPECT_THAT(outcome.text, HasSubstr("WEFT_SYMMETRIC_GLOBALS=yes"));
}

TEST(Signals, ThatAProgramWaitsForAreTakenByItsOwnThreads) {
  expect_success(launch(2, "signals"), "signals ok\n");
  expect_success(launch(3, "signals", kRails), "signals ok\n");
}

TEST(Init, WorksAgainAfterFinalize) {
  for (const std::string where : {"", kRails}) {
    const Outcome outcome = launch(3, "again 20", where);
    EXPECT_EQ(outcome.status, 0) << outcome.text;
    for (const char* pe : {"PE 0", "PE 1", "PE 2"}) {
      EXPECT_THAT(outcome.text, HasSubstr(std::string(pe) + " of 3, 20 times\n"));
    }
  }
}

TEST(Collective, ThatAPeDoesNotEnterSaysWhoIsMissing) {
  for (const std::string where : {"", kRails}) {
    const Outcome outcome = launch(3, "absent", "WEFT_WAIT_REPORT=1 " + where);
    EXPECT_EQ(outcome.status, 0) << outcome.text;
    EXPECT_THAT(outcome.text, HasSubstr("waiting for PE 2 in barrier_all"));
  }
}

TEST(Collective, ThatAPeDoesNotEnterEndsTheJobAfterTheTimeout) {
  const Outcome outcome = launch(3, "absent", "WEFT_TIMEOUT_S=1");
  EXPECT_NE(outcome.status, 0) << outcome.text;
  EXPECT_THAT(outcome.text, HasSubstr("waiting for PE 2 in barrier_all for 1 s (WEFT_TIMEOUT_S); "
                                      "this PE ends the job"));
}

TEST(ApiTour, EveryFunctionDoesWhatItSaysByCrossMemoryAttach) {
  expect_success(launch(3, "api_tour", "WEFT_NODE_LOCAL=cma"), kToured);
  expect_success(launch(4, "api_tour", std::string(kPairs) + " WEFT_NODE_LOCAL=cma"), kToured);
}

TEST(Windows, AreSymmetricOnANodeAndBetweenNodes) {
  constexpr const char* kOk = "windows ok\n";
  expect_success(launch(1, "windows"), kOk);
  expect_success(launch(4, "windows"), kOk);
  expect_success(launch(3, "windows", kRails), kOk);
  expect_success(launch(4, "windows", kPairs), kOk);
  expect_success(launch(3, "windows", "WEFT_NODE_LOCAL=cma WEFT_CHECK_LEVEL=2"), kOk);
}

TEST(CppTour, TheCppInterfaceDoesWhatItSays) {
  expect_success(launch(1, "cpp_tour"), "cpp_tour: every call did what it says\n");
  expect_success(launch(3, "cpp_tour"), "cpp_tour: every call did what it says\n");
}

// A launcher around such a program does not matter to it.
TEST(Worlds, OfAProgramThatStartsItsPesItselfFollowEachOther) {
  for (const std::string where : {"", kRails, kPairs}) {
    const Outcome outcome = launch(1, "worlds 4", where);
    EXPECT_EQ(outcome.status, 0) << outcome.text;
    EXPECT_THAT(outcome.text, HasSubstr("worlds: all met"));
  }
}

struct BadInput {
  const char* name;
  const char* sentence;  // status and words
  const char* environment = "";
};

class BadInputs : public ::testing::TestWithParam<BadInput> {};

TEST_P(BadInputs, EndInOneClearSentenceAndTheProgramGoesOn) {
  const Outcome outcome =
      launch(2, std::string("bad_input ") + GetParam().name, GetParam().environment);
  EXPECT_THAT(outcome.text, HasSubstr(GetParam().sentence));
  EXPECT_EQ(outcome.status, 0) << outcome.text;
}

INSTANTIATE_TEST_SUITE_P(
    All,
    BadInputs,
    ::testing::Values(
        BadInput{"pe_out_of_range", "-1: weft_put: there is no PE 2; PEs are 0 to 1"},
        BadInput{"list_entry_outside", "-1: weft_putv: segment 1 of 3: address 0x"},
        BadInput{"list_entry_beyond_block",
                 "-1: weft_putv_nbi: segment 1 of 2: 60 bytes from byte 32", "WEFT_CHECK_LEVEL=2"},
        BadInput{"list_entry_null",
                 "-1: weft_putv: segment 0 of 1: the local address is null, for 4 bytes"},
        BadInput{"list_null", "-1: weft_putv: the list is null, for 2 segments"},
        BadInput{"list_pe", "-1: weft_putv: there is no PE 2; PEs are 0 to 1"},
        BadInput{"list_signal_misaligned", "is not aligned to 8 bytes"},
        BadInput{"pe_negative", "-1: weft_int32_p: there is no PE -1; PEs are 0 to 1"},
        BadInput{"get_outside", "is not symmetric"},
        BadInput{"put_outside", "is not symmetric"},
        BadInput{"beyond_heap", "reach beyond the end of the heap"},
        BadInput{"beyond_block",
                 "weft_put: 60 bytes from byte 32 of a block of 64 reach beyond its end",
                 "WEFT_CHECK_LEVEL=2"},
        BadInput{"in_no_block", "lies in no block", "WEFT_CHECK_LEVEL=2"},
        BadInput{"misaligned", "is not aligned to 8 bytes"},
        BadInput{"no_such_comparison", "invalid comparison 7"},
        BadInput{"stride_zero", "they must be at least 1"},
        BadInput{"null_source", "-1: weft_put: the local address is null, for 4 bytes",
                 "WEFT_CHECK_LEVEL=2"},
        BadInput{"null_dest", "-1: weft_get: the local address is null, for 4 bytes",
                 "WEFT_CHECK_LEVEL=2"},
        BadInput{"overlap_in_put", "-1: weft_put: 8 bytes at ", "WEFT_CHECK_LEVEL=2"},
        BadInput{"no_overlap_in_put", "0: ", "WEFT_CHECK_LEVEL=2"},
        BadInput{"overlap_in_collective", "-1: weft_team_fcollect: dest, 16 bytes at ",
                 "WEFT_CHECK_LEVEL=2"},
        BadInput{"note_too_long", "-1: weft_team_exchange: a note of 257 bytes; at most 256"},
        BadInput{"context_of_destroyed_team",
                 "-1: weft_ctx_put: the context is invalid; it was destroyed, maybe with its team",
                 "WEFT_CHECK_LEVEL=2"},
        BadInput{"foreign_context", "-1: weft_ctx_int32_p: the context is invalid",
                 "WEFT_CHECK_LEVEL=2"},
        BadInput{"second_init", "-1: weft_init: Weft is initialized already"},
        BadInput{"before_init", "-2: weft_barrier_all: Weft is not initialized"},
        BadInput{"after_finalize", "-2: weft_put: Weft is not initialized"},
        BadInput{"free_twice", "is not the start of a block"},
        BadInput{"different_sizes",
                 "-5: weft_malloc: PE 1 asked for 64 bytes, PE 0 for 32; the arguments must be the "
                 "same on all PEs"},
        BadInput{"too_large", "-4: weft_malloc: 1 TiB do not fit into the heap of 8 MiB"}),
    [](const auto& test) { return test.param.name; });

TEST(Null, IsRefusedWhereverTheInterfaceWantsAnAddress) {
  constexpr const char* kOk = "nulls: each was refused\n";
  expect_success(launch(1, "nulls"), kOk);
  expect_success(launch(2, "nulls"), kOk);
  expect_success(launch(2, "nulls", "WEFT_CHECK_LEVEL=2"), kOk);
  expect_success(launch(2, "nulls", kRails), kOk);
}

// PE 1 kills itself in the case; the job ends, in bounded time, and says whom it lost.
void expect_that_pe_1_is_missed(const std::string& name, const std::string& environment = "") {
  const Outcome outcome = launch(2, "bad_input " + name, environment);
  EXPECT_NE(outcome.status, 0);
  EXPECT_NE(outcome.status, 124) << "timed out";
  EXPECT_THAT(outcome.text, HasSubstr("PE 1"));
}

std::string impatient_rails() {
  return std::string(kRails) + " WEFT_PEER_LOST_MS=1000";
}

class LostPeers : public ::testing::TestWithParam<const char*> {};

TEST_P(LostPeers, EndTheWaitForThemAndTheJob) {
  expect_that_pe_1_is_missed(GetParam());
}

INSTANTIATE_TEST_SUITE_P(All,
                         LostPeers,
                         ::testing::Values("killed_in_barrier",
                                           "killed_in_malloc",
                                           "killed_while_awaited"),
                         [](const auto& test) { return std::string(test.param); });

// Across rails nobody can see the process: the connection tells, or weft-run.
TEST_P(LostPeers, EndTheWaitForThemAndTheJobBetweenNodesToo) {
  expect_that_pe_1_is_missed(GetParam(), impatient_rails());
}

TEST(LostPeer, InAPutBetweenNodesEndsTheJob) {
  expect_that_pe_1_is_missed("killed_in_put", impatient_rails());
}

TEST(Init, SaysInOneLineWhatIsWrongWithTheNetwork) {
  const std::string rails = "WEFT_NODE_SIZE=1 ";
  EXPECT_THAT(launch(2, "api_tour", rails + "WEFT_NICS=eth99").text, HasSubstr("eth99"));
  EXPECT_THAT(launch(2, "api_tour", rails + "WEFT_PROVIDER=carrier-pigeon").text,
              HasSubstr("carrier-pigeon"));
}

TEST(Init, NamesTheVariableOfLibfabricThatHidesAllNics) {
  const Outcome outcome = launch(2, "api_tour", "WEFT_NODE_SIZE=1 FI_PROVIDER=carrier-pigeon");
  EXPECT_NE(outcome.status, 0);
  EXPECT_THAT(outcome.text,
              ::testing::AllOf(HasSubstr("FI_PROVIDER=carrier-pigeon of the environment"),
                               HasSubstr("unset it"), HasSubstr("offers none")));
}

// A job of one node needs no NIC, so that it goes on.
TEST(Init, SaysInOneLineWhatIsWrongWithTheNetworkAlsoInAJobOfOneNode) {
  for (const std::string setting :
       {"WEFT_NICS=eth99", "WEFT_PROVIDER=carrier-pigeon", "WEFT_LIBFABRIC=/no/such/file"}) {
    const Outcome outcome = launch(2, "windows", setting);
    EXPECT_EQ(outcome.status, 0) << outcome.text;
    EXPECT_THAT(outcome.text, HasSubstr(setting.substr(setting.find('=') + 1)));
    EXPECT_THAT(outcome.text, HasSubstr("this job has one node and needs no NIC, so it goes on"));
    EXPECT_EQ(std::ranges::count(outcome.text, '\n'), 2) << outcome.text;
  }
}

TEST(Init, SaysThatTheRangeOfPortsIsTooSmall) {
  const Outcome outcome = launch(3, "windows",
                                 "WEFT_NODE_SIZE=1 WEFT_PROVIDER=tcp WEFT_NICS=127.0.0.1 "
                                 "FI_TCP_PORT_LOW_RANGE=45123 FI_TCP_PORT_HIGH_RANGE=45123");
  EXPECT_NE(outcome.status, 0);
  EXPECT_THAT(outcome.text, HasSubstr("no port is free from FI_TCP_PORT_LOW_RANGE=45123 to "
                                      "FI_TCP_PORT_HIGH_RANGE=45123: each rail of each PE"));
}

TEST(TwoJobs, RunBesideEachOtherOnTheSameRails) {
  std::array<Outcome, 2> outcomes;
  {
    const std::jthread other([&] { outcomes[1] = launch(2, "api_tour", kRails); });
    outcomes[0] = launch(2, "api_tour", kRails);
  }
  for (const Outcome& outcome : outcomes) {
    expect_success(outcome, kToured);
  }
}

TEST(Init, SaysInOneLineWhatIsWrongWithTheConfiguration) {
  EXPECT_THAT(launch(1, "api_tour", "WEFT_RAIL_POLICY=best").text,
              HasSubstr("WEFT_RAIL_POLICY=best"));
  EXPECT_THAT(launch(1, "api_tour", "WEFT_HEEP_SIZE=1").text,
              HasSubstr("did you mean WEFT_HEAP_SIZE"));
}

TEST(Exit, WithoutFinalizeEndsThePeAndDoesNotWaitForOthers) {
  const Outcome alone = launch(1, "bad_input no_such_case");
  EXPECT_EQ(alone.status, 2) << alone.text;
  const Outcome together = launch(2, "bad_input no_such_case", kRails);
  EXPECT_EQ(together.status, 2) << together.text;
}

std::vector<std::string> sorted_lines(const std::string& text) {
  std::vector<std::string> lines;
  std::istringstream stream(text);
  for (std::string line; std::getline(stream, line);) {
    lines.push_back(line);
  }
  std::ranges::sort(lines);
  return lines;
}

// What the comment at the top of an example says that it prints with two PEs.
std::string promised(const std::string& source) {
  std::ifstream file(WEFT_SOURCE_DIR "/examples/" + source);
  std::string text;
  bool is_output = false;
  for (std::string line; std::getline(file, line);) {
    const std::size_t start = line.find_first_not_of("/* ");
    if (line.find("$ weft-run") != std::string::npos) {
      is_output = true;
    } else if (is_output && (start == std::string::npos || line == " */")) {
      break;
    } else if (is_output) {
      text += line.substr(start) + "\n";
    }
  }
  return text;
}

class Examples : public ::testing::TestWithParam<const char*> {};

TEST_P(Examples, PrintWhatTheirCommentsPromise) {
  const std::string source = GetParam();
  const Outcome outcome = launch(2, source.substr(0, source.find('.')));
  EXPECT_EQ(outcome.status, 0) << outcome.text;
  EXPECT_FALSE(promised(source).empty());
  EXPECT_EQ(sorted_lines(outcome.text), sorted_lines(promised(source)));
}

INSTANTIATE_TEST_SUITE_P(All,
                         Examples,
                         ::testing::Values("01_hello.c", "02_put_signal.c", "03_alltoall.cpp"),
                         [](const auto& test) { return "Example" + std::string(test.param, 2); });

}  // namespace
}  // namespace weft::test
